"""Many large recordings: export, reading, ``report`` and ``project`` by several processes beside one, and their growth.

    python tests/benchmarks/bench_many_files.py [FILES] [TRIALS]

100 files of 10,000 trials of ten actions by default, which takes a while. Prints seconds and the largest memory of a
process; the two ways take turns.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.figures import grown, tell
from tests.support.costmodel_files import S, cell, trial, write

ROUNDS = 3
ACTIONS = 10
EXPORT = """
import sys
from pathlib import Path
from taxtui.export import many_files
if __name__ == "__main__":
    for piece in many_files.pieces("csv", [Path(name) for name in sys.argv[2:]], "actions", int(sys.argv[1])):
        sys.stdout.buffer.write(piece)
"""
READ = """
import sys
from pathlib import Path
from costmodel.reading import read_recordings
if __name__ == "__main__":
    read_recordings([Path(name) for name in sys.argv[2:]], int(sys.argv[1]))
"""
COMMAND = """
import sys
from costmodel import processes
from taxtui.cli import app
if __name__ == "__main__":
    processes.worth = lambda paths, count=int(sys.argv[1]): count
    app(sys.argv[2:])
"""
ASK = ("--trajectories", "1000000", "--workers", "500")


def made(folder: Path, files: int, trials: int) -> list[Path]:
    """Recordings that differ in their run only: what is in them makes no difference here."""
    draw = random.Random(3)
    told = []
    for number in range(trials):
        durations = [draw.randrange(S // 100, S) for _ in range(ACTIONS)]
        runs = [duration // 2 for duration in durations]
        told.append(trial(number, actions=durations, runs=runs))
    cells = cell(actions=ACTIONS)
    return [write(folder / f"{n}.msgpack", told, cells, run_id=f"run-{n}") for n in range(files)]


def seconds(words: Sequence[str | Path]) -> float:
    """Of a program whose output nobody wants."""
    began = time.perf_counter()
    subprocess.run(list(map(str, words)), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def most_mb() -> float:
    """The largest memory that any process so far has had."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3


def beside(
    what: str, program: Sequence[str | Path], words: Sequence[str | Path], megabytes: float, cores: int, wanted: str
) -> None:
    """A line for one way of using files, by one process and by as many as there are cores."""
    ways: dict[int, list[float]] = {1: [], cores: []}
    for _ in range(ROUNDS):
        for workers, taken in ways.items():
            taken.append(seconds([*program, str(workers), *words]))
    alone_s, together_s = (statistics.median(taken) for taken in ways.values())
    print(f"{what:15} {alone_s:8.2f} s alone, {together_s:8.2f} s by {cores}: {alone_s / together_s:.2f} x")
    tell(f"{what} by {cores} processes", megabytes / together_s, "MB/s", megabytes / alone_s, "one", wanted=wanted)
    print(f"{'memory':15} {most_mb():8.1f} MB at most of a process so far")
    tell(f"{what}, memory of a process", most_mb(), "MB")


def main(files: int, trials: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        paths = made(Path(name), files, trials)
        megabytes = sum(path.stat().st_size for path in paths) / 1e6
        cores = os.cpu_count() or 1
        print(f"{files} files of {trials:,} trials, {megabytes:.0f} MB; {cores} cores")
        for what, program, words, wanted in (
            ("export", EXPORT, (), "≥ 1.7"),
            ("reading", READ, (), "≥ 1.7"),
            ("report", COMMAND, ("report",), ""),
            ("project", COMMAND, ("project", *ASK), ""),
        ):
            script = Path(name, f"{what}.py")
            script.write_text(program, encoding="utf-8")
            beside(what, (sys.executable, script), (*words, *paths), megabytes, cores, wanted)
        shares = [times for times in (1, 2, 4, 8, 16) if times <= files]
        for what, words in {"export": ("export",), "project": ("project", *ASK)}.items():
            taken_s = [(n, seconds([sys.executable, "-m", "taxtui", *words, *paths[:n]])) for n in shares]
            print(f"{what:15} " + ", ".join(f"x{n} {took_s:.2f} s" for n, took_s in taken_s))
            grown(f"{what} of files", "s", taken_s)


if __name__ == "__main__":
    sizes = [int(word) for word in sys.argv[1:]]
    main(*(sizes + [100, 10_000][len(sizes) :]))
