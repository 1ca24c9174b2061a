"""What each command takes for hostile recordings, beside the same command on a small one: CPU seconds and memory.

    python -m tests.benchmarks.bench_hostile [SHAPE …]

Each file has about as many cells as tables may have rows, differing in what some command takes longest for,
or more, which is then refused (exit 4). The small file has as many cells as any file may have rows, of a trial each;
for a page of eight, that it has every picture and interval: these take as long however large the file is.
Wanted: at most one second per MB more than that takes, and memory of at most 20 times the size and 150 MB.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.bench_in_flight import Taken, taken
from tests.support.cost_model.many_cells import SHAPES, many_cells

ASK: Final = ("--trajectories", "1000000", "--workers", "500")
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "report": ("report", "FILE"),
    "report --full": ("report", "FILE", "--full"),
    "report --format json": ("report", "FILE", "--format", "json"),
    "report --html": ("report", "FILE", "--html", "NEW.html"),
    "compare": ("compare", "FILE", "OTHER"),
    "compare --fail-above": ("compare", "OTHER", "FILE", "--fail-above", "10%"),
    "project": ("project", "FILE", *ASK),
    "project --full": ("project", "FILE", *ASK, "--full"),
    "project --format json": ("project", "FILE", *ASK, "--format", "json"),
    "project --html": ("project", "FILE", *ASK, "--html", "NEW.html"),
    "export csv": ("export", "FILE"),
    "export jsonl": ("export", "FILE", "--format", "jsonl", "--table", "actions"),
    "recordings verify": ("recordings", "verify", "FILE"),
    "recordings info": ("recordings", "info", "FILE"),
}
SMALL: Final = 128
"""Cells that every file may have rows for."""
SIZES: Final = ((250, 1), (149, 8), (170, 8), (250, 8), (250, 40))
"""Cells, and trials of each; a page may have rows for the second and the last, tables for the third too, an answer for
all."""
GIVE_UP_S: Final = 300.0


def run(command: Sequence[str], path: Path, other: Path, folder: Path) -> Taken:
    """Once, with new files for what it writes; ``other`` is of the same cells and another run."""
    files = {"FILE": str(path), "OTHER": str(other)}
    new = folder / f"new{time.monotonic_ns()}"
    words = [files.get(word, word.replace("NEW", str(new))) for word in command]
    return taken([sys.executable, "-m", "taxtui", *words], GIVE_UP_S)


def pair(folder: Path, shape: str, cells: int, trials: int) -> tuple[Path, Path]:
    """Two runs of the same cells."""
    one, two = (
        many_cells(folder / f"{shape}{cells}x{trials}{each}.msgpack", shape, cells, trials, actions=10, run_id=each)
        for each in ("one", "two")
    )
    return one, two


def main(shapes: Sequence[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        head = f"{'':24}{'shape':14}{'cells':>6}{'MB':>6}{'CPU s':>8}{'small':>8}"
        print(f"{head}{'s per MB more':>15}{'MB of memory':>14}  exit")
        for shape in shapes:
            small = pair(folder, shape, SMALL, 1)
            drawn = pair(folder, shape, SMALL, 8)
            floor = {
                what: run(command, *(drawn if "--html" in command else small), folder).cpu_s
                for what, command in COMMANDS.items()
            }
            for cells, trials in SIZES:
                path, other = pair(folder, shape, cells, trials)
                megabytes = path.stat().st_size / 1e6
                for what, command in COMMANDS.items():
                    used = run(command, path, other, folder)
                    more = (used.cpu_s - floor[what]) / megabytes
                    over = "" if more <= 1 and used.memory_mb <= 150 + 20 * megabytes else "  *"
                    print(
                        f"{what:24}{shape:14}{cells:6}{megabytes:6.2f}{used.cpu_s:8.2f}{floor[what]:8.2f}{more:15.2f}"
                        f"{used.memory_mb:14.0f}  {used.exit_code}{over}",
                        flush=True,
                    )


if __name__ == "__main__":
    main(sys.argv[1:] or list(SHAPES))
