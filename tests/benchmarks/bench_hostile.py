"""What each command takes for hostile recordings, beside the same command on a small honest one: seconds and memory.

    python -m tests.benchmarks.bench_hostile [SHAPE …]

Each file has as many cells as an output may have rows, differing in what some command takes longest for, and trials
until it has a megabyte or so. Wanted: at most one second per MB more than a small file takes, and memory of at most 20
times the size and 150 MB.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.figures import tell
from tests.benchmarks.taking import Taken, taken
from tests.support.many_cells import SHAPES, many_cells

ASK: Final = ("--trajectories", "1000000", "--workers", "500")
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "report": ("report", "FILE"),
    "report --full": ("report", "FILE", "--full"),
    "report --format json": ("report", "FILE", "--format", "json"),
    "report --html": ("report", "FILE", "--html", "NEW.html"),
    "compare": ("compare", "FILE", "OTHER"),
    "check": ("check", "FILE", "--against", "OTHER"),
    "project": ("project", "FILE", *ASK),
    "project --full": ("project", "FILE", *ASK, "--full"),
    "project --format json": ("project", "FILE", *ASK, "--format", "json"),
    "project --html": ("project", "FILE", *ASK, "--html", "NEW.html"),
    "export csv": ("export", "FILE"),
    "export jsonl": ("export", "FILE", "--format", "jsonl", "--table", "actions"),
    "export otlp": ("export", "FILE", "--format", "otlp"),
    "export prometheus": ("export", "FILE", "--format", "prometheus"),
    "recordings verify": ("recordings", "verify", "FILE"),
    "recordings info": ("recordings", "info", "FILE"),
    "recordings compact": ("recordings", "compact", "FILE", "-o", "NEW.msgpack"),
}
CELLS: Final = 250
SIZES: Final = {"one trial each": 1, "many": 8}
GIVE_UP_S: Final = 300.0


def run(command: Sequence[str], path: Path, other: Path, folder: Path) -> Taken:
    """Once, with new files for what it writes; ``other`` is of the same cells and another run."""
    files = {"FILE": str(path), "OTHER": str(other)}
    new = folder / f"new{time.monotonic_ns()}"
    words = [files.get(word, word.replace("NEW", str(new))) for word in command]
    return taken([sys.executable, "-m", "taxtui", *words], GIVE_UP_S)


def main(shapes: Sequence[str]) -> None:
    """Print the table, the worst of each command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        honest = [many_cells(folder / f"{each}.msgpack", "tiers", 2, trials=4, run_id=each) for each in ("one", "two")]
        floor = {what: run(command, *honest, folder) for what, command in COMMANDS.items()}
        print(f"{'':24}{'shape':14}{'MB':>6}{'s':>8}{'small':>8}{'s per MB more':>15}{'MB of memory':>14}  exit")
        worst: dict[str, tuple[float, float, float]] = {}
        for shape in shapes:
            for size, trials in SIZES.items():
                path, other = (
                    many_cells(folder / f"{shape}{trials}{each}.msgpack", shape, CELLS, trials, actions=10, run_id=each)
                    for each in ("one", "two")
                )
                megabytes = path.stat().st_size / 1e6
                for what, command in COMMANDS.items():
                    used = run(command, path, other, folder)
                    more = (used.seconds - floor[what].seconds) / megabytes
                    over = "" if more <= 1 else "  *"
                    print(
                        f"{what:24}{shape:14}{megabytes:6.2f}{used.seconds:8.2f}{floor[what].seconds:8.2f}{more:15.2f}"
                        f"{used.memory_mb:14.0f}  {used.exit_code}{over}",
                        flush=True,
                    )
                    if size == "many":
                        worst[what] = max(worst.get(what, (0.0, 0.0, 0.0)), (more, used.seconds, megabytes))
        for what, (_, took_s, megabytes) in worst.items():
            tell(
                f"{what}, hostile",
                took_s,
                "s",
                floor[what].seconds + megabytes,
                "a small file and 1 s/MB",
                wanted="≤ 1",
            )


if __name__ == "__main__":
    main(sys.argv[1:] or list(SHAPES))
