"""Run seeded studies one after the other, and keep each table: ``make study``.

    python -m tests.studies [NAME...]

NAME is a study, such as ``tails``; by default all of them run, which takes about an hour. A study prints its table, and
the table replaces ``tests/studies/NAME.txt`` where the study succeeds. Exit code 1 where one failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


def names(folder: Path = HERE) -> list[str]:
    """Return the names of all studies."""
    return sorted(path.stem.removeprefix("study_") for path in folder.glob("study_*.py"))


def main() -> int:
    """Run the studies that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.studies")
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args().names or names()
    if unknown := set(chosen) - set(names()):
        parser.error(f"there is no study {min(unknown)}; there are {', '.join(names())}")
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        study = subprocess.run(
            [sys.executable, "-m", f"tests.studies.study_{name}"],
            cwd=HERE.parents[1], stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        print(study.stdout, flush=True)
        if study.returncode == 0:
            (HERE / f"{name}.txt").write_text(study.stdout, encoding="utf-8")
        else:
            failed.append(name)
    for name in failed:
        print(f"{name} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
