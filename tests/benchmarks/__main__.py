"""Runs the benchmarks one after the other, and puts all their figures into one table.

    python -m tests.benchmarks [NAME...] [--json FILE] [--page FILE]

NAME is that of a benchmark, as ``recording``; by default all of them run. Their own printouts go through; then comes
the table. ``--json`` writes the figures, and keeps what is there of benchmarks that did not run; ``--page`` writes the
tables with date, machine and load. Exit code 1 where a benchmark failed: its figures until then are in the table.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tests.benchmarks import figures

HERE: Final = Path(__file__).parent


def names(folder: Path = HERE) -> list[str]:
    """Of all benchmarks."""
    return sorted(path.stem.removeprefix("bench_") for path in folder.glob("bench_*.py"))


def collected(wanted: Sequence[str], folder: Path = HERE) -> tuple[list[figures.Figure], list[str]]:
    """The figures of these benchmarks, and which of them failed."""
    found: list[figures.Figure] = []
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in wanted:
            kept = Path(scratch, name)
            print(f"== {name}", flush=True)
            told = {**os.environ, figures.ASKED: str(kept), "PYTHONPATH": str(HERE.parents[1])}
            done = subprocess.run([sys.executable, folder / f"bench_{name}.py"], env=told, check=False)
            found += figures.read(kept, name)
            failed += [name] if done.returncode else []
    return found, failed


def machine() -> str:
    """Date, processor, cores, kernel, Python, and how busy the machine is."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    system = f"{platform.system()} {platform.release()}"
    return f"{when}; {model}, {os.cpu_count()} cores; {system}; Python {platform.python_version()}; load {load}"


class Run(msgspec.Struct, frozen=True):
    """Benchmarks that ran one after the other, on one machine."""

    began: str  # date, machine and load
    ended: str
    figures: list[figures.Figure]

    @property
    def benches(self) -> list[str]:
        """Those that told a figure."""
        return list(dict.fromkeys(one.bench for one in self.figures))


def renewed(runs: Sequence[Run], last: Run, wanted: Collection[str]) -> list[Run]:
    """The last run and, of those before it, what it has not measured anew."""
    kept = [Run(run.began, run.ended, [one for one in run.figures if one.bench not in wanted]) for run in runs]
    return [run for run in [*kept, last] if run.figures]


def page(runs: Sequence[Run], failed: Sequence[str]) -> str:
    """tests/benchmarks/RESULTS.md."""
    lines = [
        "# Benchmarks",
        "",
        'What `make bench` printed; `make bench ARGS="ui"` makes the rows of that benchmark anew. A figure stands '
        "beside a baseline of the same run, so that a busy or a slow machine changes both; the ratio is what to "
        "compare. Of growth the baseline is the first figure times the work: 1 is growth in proportion.",
    ]
    for run in runs:
        lines += ["", f"## {', '.join(run.benches)}", "", f"Begun {run.began}.  ", f"Ended {run.ended}."]
        lines += ["", figures.table(run.figures)]
    if failed:
        lines += ["", f"Not all was measured: {', '.join(failed)} failed, or broke a promise."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    known = names()
    if unknown := set(asked.names) - set(known):
        parser.error(f"there is no benchmark {min(unknown)}; there are {', '.join(known)}")
    wanted = asked.names or known
    earlier = asked.json.read_bytes() if asked.json is not None and asked.json.exists() else b"[]"
    began = machine()
    found, failed = collected(wanted)
    print(f"\n{began}\n\n{figures.table(found)}")
    runs = renewed(msgspec.json.decode(earlier, type=list[Run]), Run(began, machine(), found), wanted)
    if asked.json is not None:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(runs)) + b"\n")
    if asked.page is not None:
        asked.page.write_text(page(runs, failed), encoding="utf-8")
    for name in failed:
        print(f"{name} failed, or broke a promise", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
