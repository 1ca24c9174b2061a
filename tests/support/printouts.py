"""Run benchmarks or studies one after the other, and keep each printout: ``make bench`` and ``make study``.

    python -m tests.support.printouts benchmarks|studies [NAME...]
NAME is a benchmark or study, such as ``tails``; by default all of them run. The printout replaces NAME.txt beside the
program. Exit code 1 where one failed, or where a benchmark broke its limit; the last line of NAME.txt says so.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]
PREFIXES: Final = {"benchmarks": "bench_", "studies": "study_"}


def machine() -> str:
    """Return date, processor, cores, kernel, Python, and load."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    system = f"{platform.system()} {platform.release()}"
    return f"{when}; {model}, {os.cpu_count()} cores; {system}; Python {platform.python_version()}; load {load}"


def main() -> int:
    """Run the chosen programs."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.printouts")
    parser.add_argument("kind", choices=PREFIXES)
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args()
    folder, prefix = TESTS / chosen.kind, PREFIXES[chosen.kind]
    known = sorted(path.stem.removeprefix(prefix) for path in folder.glob(f"{prefix}*.py"))
    if unknown := set(chosen.names) - set(known):
        parser.error(f"there is no {min(unknown)}; there are {', '.join(known)}")
    failed = []
    for name in chosen.names or known:
        print(f"== {name}", flush=True)
        head = f"{machine()}\n\n" if chosen.kind == "benchmarks" else ""
        argv = [sys.executable, "-m", f"tests.{chosen.kind}.{prefix}{name}"]
        program = subprocess.run(argv, cwd=TESTS.parent, stdout=subprocess.PIPE, text=True, check=False)
        print(program.stdout, flush=True)
        tail = f"\nexit code {program.returncode}: failed, or broke a limit\n" if program.returncode else ""
        (folder / f"{name}.txt").write_text(head + program.stdout + tail, encoding="utf-8")
        if program.returncode:
            failed.append(name)
    for name in failed:
        print(f"{name} failed, or broke a limit", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
