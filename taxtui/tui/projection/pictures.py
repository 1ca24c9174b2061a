"""What the pictures of a projection show besides their lines and bars: knees, break-evens, causes in dollars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, Literal, NamedTuple

from costmodel.analysis.baseline import break_even
from costmodel.analysis.ranking import WorkLine
from costmodel.analysis.sensitivity import Curve
from costmodel.projection.row import BreakEven
from taxtui.report.bars import Bar
from taxtui.report.numbers import compact, money, number
from taxtui.report.projected.attributed import unit_of
from taxtui.terminal_text import clean

Picture = Literal["cost", "actions", "workers", "causes"]
PICTURES: Final[tuple[Picture, ...]] = ("cost", "actions", "workers", "causes")
"""What the sandbox costs a run in steps, by cause; completion over actions; wall-clock over workers; time by cause."""
STILL_WORTH: Final = 0.9
"""Of a worker's time, what must still help for one more worker to be worth it."""


class Crossing(NamedTuple):
    """Two places that hold a worker equally long at some number of actions."""

    one: str
    other: str
    at: BreakEven


def knee(curve: Curve) -> int | None:
    """The largest number of workers of which nine tenths of the time still help; None where there is no such limit.

    What helps is measured at the smallest number: perfect sharing would keep workers × wall-clock constant.
    """
    points = [(point.at, point.wall_clock_hours) for point in curve.points if point.wall_clock_hours]
    if not points:
        return None
    held = [workers * hours for workers, hours in points]
    worth = [workers for (workers, _), total in zip(points, held, strict=True) if held[0] >= STILL_WORTH * total]
    return None if len(worth) == len(points) else max(worth)


def crossings(line: WorkLine) -> list[Crossing]:
    """Of the places of a work, two by two, those whose break-even length is known."""
    rows = [entry for entry in line.entries if entry.row.evidence is not None]
    found = [(one, other, break_even(one.row, other.row)) for one, other in combinations(rows, 2)]
    return [
        Crossing(clean(one.place.name), clean(other.place.name), at)
        for one, other, at in found
        if at is not None and at.actions
    ]


def break_even_words(line: WorkLine, found: Sequence[Crossing]) -> str:
    """``local = docker at 12 actions``, or that there is none; "" of one place alone."""
    if found:
        return ", ".join(f"{one} = {other} at {number(at.actions)} actions" for one, other, at in found[:2])
    return "no break-even: the same is cheaper at every length" if len(line.entries) > 1 else ""


def knee_words(curves: Sequence[Curve], label: str) -> str:
    """``knee of docker at 20,000: beyond it less than 90 % of a worker helps``."""
    own = next((curve for curve in curves if curve.label == label), None)
    if own is None:
        return ""
    at = knee(own)
    if at is None:
        return f"no knee up to {own.points[-1].at:,}" if own.points else ""
    return f"{clean(label)}: knee at {at:,}, beyond it under {STILL_WORTH:.0%} of a worker helps"


def cost_title(line: WorkLine) -> str:
    """In what the bars of a cost are."""
    units = [unit_of(entry.row.attribution).name for entry in line.entries if entry.row.attribution is not None]
    return f"what the sandbox costs{f', in {units[0]}' if units else ''} · {clean(line.name)}"


def cost_bars(line: WorkLine | None) -> list[Bar]:
    """What the sandbox costs a run in steps at each place, by cause: in dollars where there are prices, else hours."""
    if line is None:
        return []
    bars = []
    for entry in line.entries:
        found = entry.row.attribution
        if found is not None:
            unit = unit_of(found)
            told = {cause: unit.of(share).value for cause, share in found.causes.items() if share is not None}
            parts = {cause: amount for cause, amount in told.items() if amount > 0}
            show = money if unit.usd else compact
            whole = f"{show(unit.of(found.sandbox).value)} of {show(unit.of(found.run).value)}"
            bars.append(Bar(entry.place.label, entry.place.name, line.work.mode, parts, whole))
    return bars
