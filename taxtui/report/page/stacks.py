"""Bars of several parts, one below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.patches import Patch

from taxtui.report.page.lines import BAR, MarkLine, lines_axes, lines_height
from taxtui.report.page.palette import SURFACE, light
from taxtui.report.page.scales import Tick, limits
from taxtui.report.page.sheet import Sheet, along_x, legend_height

COLUMNS = 4


class Stack(NamedTuple):
    """One bar: what stands above it, and its parts in the order in which they are drawn."""

    line: MarkLine
    parts: Mapping[str, float]  # by name; nothing of one that is 0


def roles_of(stacks: Sequence[Stack]) -> list[str]:
    """The parts that any bar has, in order."""
    return list(dict.fromkeys(part for stack in stacks for part, amount in stack.parts.items() if amount))


def stacks_height(stacks: Sequence[Stack]) -> int:
    """Of their panel."""
    return lines_height(len(stacks), legend_height(len(roles_of(stacks)), COLUMNS))


def draw_stacks(sheet: Sheet, stacks: Sequence[Stack], roles: Mapping[str, str], ticks: Sequence[Tick]) -> None:
    """Draw the bars; ``roles``: part → the role of its colour."""
    parts = roles_of(stacks)
    axes = lines_axes(sheet, [stack.line for stack in stacks], foot=legend_height(len(parts), COLUMNS))
    totals = [sum(stack.parts.values()) for stack in stacks]
    lefts = [0.0] * len(stacks)
    at = [number + 0.08 for number in range(len(stacks))]
    for part in parts:
        widths = [stack.parts.get(part, 0.0) for stack in stacks]
        fill, gap = light(roles[part]), light(SURFACE)
        axes.barh(at, widths, left=lefts, height=BAR, color=fill, edgecolor=gap, linewidth=0.5)
        lefts = [left + width for left, width in zip(lefts, widths, strict=True)]
    axes.set_xlim(0, limits(totals, log=False, room=0.02)[1])
    along_x(axes, ticks)
    sheet.legend([(part, Patch(color=light(roles[part]))) for part in parts], COLUMNS)
