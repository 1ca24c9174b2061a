"""Expected duration of a plan, from earlier recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import Follower, SourceError
from taxtui.live import catalogue
from taxtui.live.catalogue import CatalogueEntry
from taxtui.live.state import RunState
from taxtui.plan.spec import CellPlan, Plan
from taxtui.report.numbers import rough_duration

MOST_BYTES: Final = 64 << 20
"""Maximum bytes of recordings to read, the newest first."""

SLICE_BYTES: Final = 64 << 10
WHOLE: Final = ("0s", "create")
"""Think time and acquisition of plain trials; other cells are ignored."""


class PastTrial(NamedTuple):
    """Mean trial of a recorded cell."""

    label: str  # substrate and variant: docker:runsc
    tier: str
    mode: str
    actions: float  # mean
    concurrency: int
    trial_ns: float  # mean, from the create request to the end of cleanup
    action_ns: float  # mean
    path: Path
    shipped: bool


class Expected(NamedTuple):
    """Expected time of a planned cell; None without a recording of such a cell."""

    cell: CellPlan
    variant: str  # of the substrate; "" if unknown
    trial: PastTrial | None
    trial_ns: float | None  # of one sandbox, as ``Trial.trial_ns``
    wall_ns: float | None  # of the whole cell


def expect(plan: Plan, trials: Sequence[PastTrial], variants: Mapping[str, str]) -> list[Expected]:
    """Return the expected time of every cell of a plan.

    A trial of the same concurrency is taken, else of 1, else of any; then of the closest length.

    Args:
        plan: the plan.
        trials: recorded trials, the newest first.
        variants: substrate, as ``-s`` takes it → variant. Without a variant, the newest label of a substrate counts.
    """
    results = []
    for cell in plan.cells:
        name, checked = cell.substrate.name, variants.get(str(cell.substrate))
        labels = [trial.label for trial in trials if trial.label.partition(":")[0] == name]
        newest = "" if cell.substrate.options else next(iter(labels), "")
        label = newest if checked is None else f"{name}:{checked}" if checked else name
        wanted = label, cell.tier.name, cell.mode
        candidates = [trial for trial in trials if (trial.label, trial.tier, trial.mode) == wanted]
        trial = min(candidates, key=partial(_distance, cell), default=None) if cell.acquire == WHOLE[1] else None
        variant = label.partition(":")[2] if checked is None else checked
        if trial is None:
            results.append(Expected(cell, variant, None, None, None))
            continue
        think_ns = cell.actions * cell.think.mean_ns
        measured_ns = trial.trial_ns + (cell.actions - trial.actions) * trial.action_ns
        trial_ns = max(measured_ns, cell.actions * trial.action_ns) + think_ns
        # warm-ups in sequence, then blocks of trials, each drained before the next
        wall_ns = cell.warmup * trial_ns + cell.arrival.wall_ns(cell.trials, cell.concurrency, trial_ns)
        results.append(Expected(cell, variant, trial, trial_ns, wall_ns))
    return results


def _distance(cell: CellPlan, trial: PastTrial) -> tuple[int, float]:
    concurrency = 0 if trial.concurrency == cell.concurrency else trial.concurrency
    return concurrency, abs(trial.actions - cell.actions)


def time_words(plan: Plan, expected: Sequence[Expected]) -> str:
    """Return ``~22 min, estimated from 2 recordings``, with the unmeasured cells and the time budget."""
    walls_ns = [item.wall_ns for item in expected if item.wall_ns is not None]
    missing = _missing(expected)
    limit = f"at most {rough_duration(plan.budget_s * 1e9)}, the budget" if plan.budget_s else ""
    if not walls_ns:
        unknown = f"unknown for {missing}: no recording of it yet"
        return f"{limit}; {unknown}" if limit else unknown
    total_ns = plan.repeat * sum(walls_ns)
    words = f"~{rough_duration(total_ns)}" + (f" + {missing} (not measured yet)" if missing else "")
    source = _source([item.trial for item in expected if item.trial])
    if plan.budget_s and (missing or total_ns > plan.budget_s * 1e9):
        return f"{limit} ({words} without it, {source})"
    return f"{words}, {source}"


def _source(trials: Sequence[PastTrial]) -> str:
    paths = {trial.path for trial in trials}
    shipped = "shipped " if all(trial.shipped for trial in trials) else ""
    return f"estimated from {len(paths)} {shipped}recording{'' if len(paths) == 1 else 's'}"


def _missing(expected: Sequence[Expected]) -> str:
    """Return the cells without a recording: ``ec2``, ``docker T2``, ``docker T2 session``."""
    measured = [_names(item) for item in expected if item.wall_ns is not None]
    names: dict[str, None] = {}
    for words in (_names(item) for item in expected if item.wall_ns is None):
        depth = next(d for d in (1, 2, 3) if d == 3 or words[:d] not in [cell[:d] for cell in measured])
        names[" ".join(words[:depth])] = None
    more = len(names) - 3
    return ", ".join(list(names)[:3]) + (f" and {more} more" if more > 0 else "")


def _names(item: Expected) -> list[str]:
    return [str(item.cell.substrate), item.cell.tier.name, item.cell.mode]


def listing() -> Sequence[CatalogueEntry]:
    """Return the recordings of this machine, the newest first, then the shipped recordings."""
    return catalogue.scan().entries


class HistoryReader:
    """Reads the trials of recordings; an unchanged recording is read once."""

    def __init__(self) -> None:
        self._trials: dict[tuple[Path, tuple[int, int]], list[PastTrial]] = {}

    def read(self, stop: Callable[[], bool]) -> list[PastTrial]:
        """Return the trials of the newest recordings, up to ``MOST_BYTES`` or until ``stop`` returns true."""
        left_bytes = MOST_BYTES
        trials: list[PastTrial] = []
        present = set()
        for entry in listing():
            if entry.state in catalogue.HOPELESS or entry.size_bytes > left_bytes:
                continue
            left_bytes -= entry.size_bytes
            key = entry.path, entry.stamp
            if key not in self._trials:
                result = _trials(entry, stop)
                if result is None:
                    return trials
                self._trials[key] = result
            present.add(key)
            trials += self._trials[key]
        self._trials = {key: self._trials[key] for key in present}
        return trials


def _trials(entry: CatalogueEntry, stop: Callable[[], bool]) -> list[PastTrial] | None:
    """Return the measured cells of a recording, up to the first damage; None if stopped."""
    state = RunState()
    try:
        with Follower(entry.path) as follower:
            while events := follower.poll(SLICE_BYTES):
                if stop():
                    return None
                for event in events:
                    state.apply(event)
    except SourceError:
        pass  # the cells before the damage are valid
    return [
        PastTrial(
            label=cell.label,
            tier=cell.tier,
            mode=cell.mode,
            actions=cell.mean_actions,
            concurrency=cell.concurrency,
            trial_ns=cell.trial_ns,
            action_ns=cell.facets["action"].mean,
            path=entry.path,
            shipped=entry.shipped,
        )
        for cell in state.cells.values()
        if cell.ok and cell.trial_ns and cell.provenance == "measured" and (cell.think, cell.acquire) == WHOLE
    ]
