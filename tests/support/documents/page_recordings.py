"""Recordings for tests of pages and figures: two substrates, two lengths, two modes, two runs, some failures."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, Final

from tests.support.cost_model.costmodel_files import S, cell, trial, write

MS: Final = S // 1000
TRIALS: Final = 12


def recordings(folder: Path, **identity: Any) -> list[Path]:
    """Two files of one run each; ``identity`` is of all cells."""
    return [_recording(folder, number, **identity) for number in (1, 2)]


def price_sheet(folder: Path, **usd_per_hour: float) -> Path:
    """A price sheet of substrates that are billed by the millisecond."""
    stanza = '[[sandbox]]\nsubstrate = "{}"\nusd_per_hour = {}\nminimum_s = 0\nincrement_s = 0.001\nsource = "x"\n'
    path = folder / "prices.toml"
    path.write_text("date = 2026-10-01\n" + "".join(stanza.format(*each) for each in usd_per_hour.items()))
    return path


def _recording(folder: Path, seed: int, **identity: Any) -> Path:
    random = Random(seed)
    cells: list[list[Any]] = []
    trials: list[list[list[Any]]] = []
    for substrate, create_ms in (("docker", 250), ("local", 20)):
        for actions in (10, 50):
            for mode, dispatch_ms in (("exec", 40), ("session", 2)):
                number = len(cells)
                own = {"substrate": substrate, "actions": actions, "mode": mode, "tier": "T1", **identity}
                cells.append(cell(number, **own))
                for _ in range(TRIALS):
                    runs = [round(random.uniform(3, 5) * MS) for _ in range(actions)]
                    create = round(create_ms * MS * random.lognormvariate(0, 0.1))
                    trials.append(
                        trial(
                            len(trials),
                            cell=number,
                            create=create,
                            ready=create // 10,
                            actions=[run + dispatch_ms * MS for run in runs],
                            runs=runs,
                            outcome="failed" if len(trials) % 30 == 7 else "ok",
                            block=len(trials) // 4,
                        )
                    )
    for index, events in enumerate(trials):
        at = (index + 1) * 1000 * S
        events.append([8, at, MS, (index % 9) * 700_000, 9 * MS, 100 + index, 1, 0, 800_000])
    return write(folder / f"run-{seed}.msgpack", trials, *cells, run_id=f"run-{seed}")
