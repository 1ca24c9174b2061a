"""Many large recordings: export, reading, ``report`` and ``project`` by several processes beside one, and their growth.

    python tests/benchmarks/bench_many_files.py [FILES] [TRIALS]

100 files of 10,000 trials of ten actions by default, each way once, which takes ten minutes; fewer take turns thrice.
Prints seconds, the ratio of the two ways, the CPU time that all processes take, whatever runs beside, and the largest
memory of a process.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.figures import grown, tell
from tests.benchmarks.taking import Taken, taken
from tests.support.costmodel_files import S, cell, trial, write

ROUNDS = 3
MANY = 500_000
"""Trials from which on one round takes long enough to tell."""
ACTIONS = 10
USED = """
import atexit, resource
from pathlib import Path

TOLD = Path(__file__).with_suffix(".used")

def told():
    own, others = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used = [one.ru_utime + one.ru_stime for one in (own, others)]
    TOLD.write_text(" ".join(map(str, used)))

if __name__ == "__main__":
    atexit.register(told)
"""
"""CPU seconds of a program and of the processes that it started."""
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
from costmodel.recording.load import read_recordings
if __name__ == "__main__":
    read_recordings([Path(name) for name in sys.argv[2:]], int(sys.argv[1]))
"""
COMMAND = """
import sys
from costmodel.recording.parallel import dealing, processes
from taxtui.cli import app
if __name__ == "__main__":
    processes.worth = lambda paths, count=int(sys.argv[1]): count
    if sys.argv[1] == "1":
        dealing.forks = lambda: False
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


def used(words: Sequence[str | Path]) -> Taken:
    """By a program that must not fail."""
    found = taken(words)
    if found.exit_code:
        raise SystemExit(f"{words[:4]} failed with {found.exit_code}")
    return found


def beside(
    what: str, program: Sequence[str | Path], options: Sequence[str], paths: Sequence[Path], cores: int, rounds: int
) -> None:
    """Lines for one way of using files: by one process and by as many as there are cores, and the memory of either."""
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    one_mb = used([*program, "1", *options, paths[0]]).memory_mb
    ways: dict[int, list[Taken]] = {1: [], cores: []}
    cpus: dict[int, list[tuple[float, ...]]] = {1: [], cores: []}
    for _ in range(rounds):
        for workers, each in ways.items():
            each.append(used([*program, str(workers), *options, *paths]))
            words = Path(program[1]).with_suffix(".used").read_text(encoding="utf-8").split()
            cpus[workers].append(tuple(map(float, words)))
    alone_s, together_s = (statistics.median(one.seconds for one in each) for each in ways.values())
    print(f"{what:15} {alone_s:8.2f} s alone, {together_s:8.2f} s by {cores}: {alone_s / together_s:.2f} x")
    tell(f"{what} by {cores} processes", megabytes / together_s, "MB/s", megabytes / alone_s, "one", wanted="≥ 1.7")
    (one_s, _), (own_s, others_s) = (
        [statistics.median(part) for part in zip(*each, strict=True)] for each in cpus.values()
    )
    all_s = own_s + others_s
    print(f"{'CPU':15} {one_s:8.2f} s alone, {own_s:8.2f} s and {others_s:.2f} s in others: {all_s / one_s:.2f} x")
    tell(f"{what}, CPU of all processes", all_s, "s", one_s, "one")
    most_mb = max(one.memory_mb for one in ways[cores])
    alone_mb = max(one.memory_mb for one in ways[1])
    print(
        f"{'memory':15} {most_mb:8.1f} MB at most of a process, {alone_mb:.1f} MB alone; {one_mb:.1f} MB for one file"
    )
    tell(f"{what}, memory of a process", most_mb, "MB", one_mb, "for one file")


def main(files: int, trials: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        paths = made(Path(name), files, trials)
        megabytes = sum(path.stat().st_size for path in paths) / 1e6
        cores = os.cpu_count() or 1
        print(f"{files} files of {trials:,} trials, {megabytes:.0f} MB; {cores} cores")
        rounds = ROUNDS if files * trials < MANY else 1
        for what, program, words in (
            ("export", EXPORT, ()),
            ("reading", READ, ()),
            ("report", COMMAND, ("report",)),
            ("project", COMMAND, ("project", *ASK)),
        ):
            script = Path(name, f"{what}.py")
            script.write_text(USED + program, encoding="utf-8")
            beside(what, (sys.executable, script), words, paths, cores, rounds)
        shares = [times for times in (1, 2, 4, 8, 16) if times <= files]
        for what, words in {"export": ("export",), "project": ("project", *ASK)}.items():
            found = [(n, used([sys.executable, "-m", "taxtui", *words, *paths[:n]])) for n in shares]
            print(f"{what:15} " + ", ".join(f"x{n} {one.seconds:.2f} s {one.memory_mb:.0f} MB" for n, one in found))
            grown(f"{what} of files", "s", [(n, one.seconds) for n, one in found])
            grown(f"{what} of files, memory of a process", "MB", [(n, one.memory_mb) for n, one in found])


if __name__ == "__main__":
    sizes = [int(word) for word in sys.argv[1:]]
    main(*(sizes + [100, 10_000][len(sizes) :]))
