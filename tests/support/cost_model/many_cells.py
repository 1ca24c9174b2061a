"""Recordings of as many cells as a file may announce, each in the shape that some command takes longest for."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from costmodel.recording.events import MAX_CELLS
from tests.support.cost_model.costmodel_files import S, cell, trial, write

Shape = Callable[[int], dict[str, Any]]

SHAPES: Final[dict[str, Shape]] = {
    "lengths": lambda i: {"actions": i + 1},
    "tiers": lambda i: {"tier": f"T{i}"},
    "places": lambda i: {"substrate": f"s{i}"},
    "environments": lambda i: {"environment": f"e{i}"},
    "levels": lambda i: {"concurrency": i + 1, "arrival": "closed"},
    "square": lambda i: {"tier": f"T{i // 32}", "substrate": f"s{i % 32}"},
}
"""What the cells of a file differ in: the ``i``-th of them."""


def many_cells(
    path: Path, shape: str, cells: int = MAX_CELLS, trials: int = 1, actions: int = 1, run_id: str = "run-1"
) -> Path:
    """A recording of ``cells`` cells of ``trials`` trials each, of ``actions`` commands but where lengths differ."""
    draw = random.Random(7)
    told, done = [], []
    for number in range(cells):
        told.append(cell(number, **{"actions": actions, **SHAPES[shape](number)}))
        length = SHAPES[shape](number).get("actions", actions)
        for turn in range(trials):
            durations = [draw.randrange(S, 2 * S) for _ in range(length)]
            own = [duration - draw.randrange(S // 100, S // 10) for duration in durations]
            create = draw.randrange(S, 2 * S)
            done.append(trial(number * trials + turn, cell=number, create=create, actions=durations, runs=own))
    return write(path, done, *told, run_id=run_id)
