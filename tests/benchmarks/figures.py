"""A figure of a benchmark, beside its baseline of the same run; the table of all of them; and what a program takes.

A benchmark prints what it likes and hands its figures to ``tell``, which keeps them where
``python -m tests.benchmarks`` asks for them, and drops them where nobody does.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

ASKED: Final = "TAXTUI_FIGURES"
"""The environment variable with the file that figures are appended to, a line of JSON each."""


class Figure(msgspec.Struct, frozen=True):
    """What was measured, in ``unit``; and what it is measured against, in the same run."""

    name: str
    value: float
    unit: str
    baseline: float | None = None  # in the same unit; None: nothing is comparable
    against: str = ""  # what the baseline is
    wanted: str = ""  # of the ratio, or of the value: "≤ 1.08", as it was promised
    bench: str = ""  # the module that measured it, set by the one who collects

    @property
    def ratio(self) -> float | None:
        """The value over its baseline."""
        return self.value / self.baseline if self.baseline else None


def tell(
    name: str, value: float, unit: str, baseline: float | None = None, against: str = "", *, wanted: str = ""
) -> None:
    """Keep a figure, if somebody collects them."""
    if path := os.environ.get(ASKED):
        with Path(path).open("ab") as file:
            file.write(msgspec.json.encode(Figure(name, value, unit, baseline, against, wanted)) + b"\n")


def grown(name: str, unit: str, values: Sequence[tuple[int, float]], *, wanted: str = "") -> None:
    """Keep how a cost grows: ``values`` are (times the work, cost), the first of them that of one.

    The baseline of each is the first one times the work: a ratio of 1 is growth in proportion.
    """
    first = values[0][1]
    for times, value in values[1:]:
        tell(f"{name}, x{times}", value, unit, first * times, f"x{times} of the first", wanted=wanted)


def read(path: Path, bench: str) -> list[Figure]:
    """What one benchmark has told; none where it told nothing."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.structs.replace(msgspec.json.decode(line, type=Figure), bench=bench) for line in lines]


def table(figures: Iterable[Figure]) -> str:
    """All as one table of Markdown."""
    lines = ["| benchmark | figure | value | baseline | ratio | wanted |", "|---|---|---|---|---|---|"]
    for one in figures:
        base = "" if one.baseline is None else f"{number(one.baseline)} {one.unit} {one.against}".rstrip()
        ratio = "" if one.ratio is None else number(one.ratio)
        cells = (one.bench, one.name, f"{number(one.value)} {one.unit}", base, ratio, one.wanted)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


class Taken(NamedTuple):
    """Wall-clock seconds, the most memory in MB that it or one of its processes had, and its exit code.

    Memory is never less than what this process had as it started it: the kernel counts that in.
    """

    seconds: float
    memory_mb: float
    exit_code: int
    cpu_s: float = 0.0  # user and system, of it and its children: what does not depend on what runs beside


def taken(words: Sequence[str | Path], give_up_s: float = 3600.0) -> Taken:
    """By a program whose output nobody wants; it is killed where it takes too long."""
    began = time.perf_counter()
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killer = threading.Timer(give_up_s, process.kill)
    killer.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    killer.cancel()
    return Taken(time.perf_counter() - began, used.ru_maxrss / 1e3, process.returncode, used.ru_utime + used.ru_stime)
