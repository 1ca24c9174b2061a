"""CPU seconds and memory of commands on a small file of very many cells, beside the same command on fewer cells.

    python -m tests.benchmarks.bench_hostile      exit 1 where a limit is broken
Limits: one CPU second per MB more than the small file takes; memory of 150 MB and 20 times the size of the file.
Both files take turns; each figure is the least of three runs, since a loaded machine only adds to CPU time.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.bench_in_flight import Taken, taken
from tests.support.cost_model.costmodel_files import S, cell, trial, write

ASK: Final = ("--trajectories", "1000000", "--workers", "500")
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "report": ("report", "FILE"),
    "report --html": ("report", "FILE", "--html", "FILE.html"),
    "project --html": ("project", "FILE", *ASK, "--html", "FILE.html"),
    "export": ("export", "FILE", "--format", "jsonl", "--table", "actions"),
}
SMALL: Final = (128, 8)
"""Cells that every file may have rows for, and trials of each: enough for every picture and interval of a page."""
HOSTILE: Final = (250, 40)
ROUNDS: Final = 3
GIVE_UP_S: Final = 300.0


def many_cells(path: Path, cells: int, trials: int, actions: int = 10) -> Path:
    """A recording of cells of 32 substrates, whose trials have random lengths."""
    draw = random.Random(7)
    kinds = [cell(i, tier=f"T{i // 32}", substrate=f"s{i % 32}", actions=actions) for i in range(cells)]
    done = []
    for number in range(cells * trials):
        durations = [draw.randrange(S, 2 * S) for _ in range(actions)]
        runs = [duration - draw.randrange(S // 100, S // 10) for duration in durations]
        done.append(trial(number, cell=number // trials, create=draw.randrange(S, 2 * S), actions=durations, runs=runs))
    return write(path, done, *kinds)


def least(command: tuple[str, ...], *paths: Path) -> list[Taken]:
    """The run of least CPU time on each of the files; all must succeed."""
    runs: list[list[Taken]] = [[] for _ in paths]
    for _ in range(ROUNDS):
        for path, own in zip(paths, runs, strict=True):
            words = [word.replace("FILE", str(path)) for word in command]
            own.append(taken([sys.executable, "-m", "taxtui", *words], GIVE_UP_S))
            assert own[-1].exit_code == 0, words
            path.with_name(f"{path.name}.html").unlink(missing_ok=True)
    return [min(own, key=lambda one: one.cpu_s) for own in runs]


def main() -> bool:
    kept = True
    with tempfile.TemporaryDirectory() as name:
        small, hostile = (
            many_cells(Path(name) / f"{cells}.msgpack", cells, trials) for cells, trials in (SMALL, HOSTILE)
        )
        more_mb, mb = (hostile.stat().st_size - small.stat().st_size) / 1e6, hostile.stat().st_size / 1e6
        limit_mb = 150 + 20 * mb
        print(f"{HOSTILE[0]} cells, {mb:.2f} MB; limits: 1 CPU s per MB more, {limit_mb:.0f} MB of memory")
        for what, command in COMMANDS.items():
            few, many = least(command, small, hostile)
            each_s = (many.cpu_s - few.cpu_s) / more_mb
            print(f"{what:16}{many.cpu_s:8.2f} s{few.cpu_s:8.2f} s small{each_s:8.2f} s/MB{many.memory_mb:8.0f} MB")
            kept &= each_s <= 1 and many.memory_mb <= limit_mb
    print("kept" if kept else "NOT KEPT")
    return kept


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
