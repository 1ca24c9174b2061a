"""Stacked bars below one another, each with its name and amount above, so that both fit a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from taxtui.report.page.figure import FONT, Canvas, along_x, legend_height, legible
from taxtui.report.page.palette import INK, MUTED, SURFACE, light
from taxtui.report.page.scales import Tick, limits
from taxtui.terminal_text import cut, width

ROW_PX: Final = 33
TEXT_COLUMNS: Final = 58
"""Columns of a name and an amount together."""
SHORTEST_NAME: Final = 12
BAR: Final = 0.36
"""Share of a row's height."""
LEGEND_COLUMNS: Final = 4


class Stack(NamedTuple):
    """One bar with its name and amount."""

    name: str
    amount: str
    parts: Mapping[str, float]  # by name, in the order of drawing; a part of 0 is not drawn


def parts_of(stacks: Sequence[Stack]) -> list[str]:
    """Return the names of the drawn parts, in order."""
    return list(dict.fromkeys(part for stack in stacks for part, amount in stack.parts.items() if amount))


def stacks_height(stacks: Sequence[Stack]) -> int:
    """Return the height of a panel with these bars."""
    return ROW_PX * len(stacks) + 24 + legend_height(len(parts_of(stacks)), LEGEND_COLUMNS)


def draw_stacks(canvas: Canvas, stacks: Sequence[Stack], roles: Mapping[str, str], ticks: Sequence[Tick]) -> None:
    """Draw the bars; ``roles``: part → role of its colour."""
    parts = parts_of(stacks)
    axes = _named_axes(canvas, stacks, foot=legend_height(len(parts), LEGEND_COLUMNS))
    totals = [sum(stack.parts.values()) for stack in stacks]
    starts = [0.0] * len(stacks)
    y = [number + 0.08 for number in range(len(stacks))]
    for part in parts:
        widths = [stack.parts.get(part, 0.0) for stack in stacks]
        fill, gap = light(roles[part]), light(SURFACE)
        axes.barh(y, widths, left=starts, height=BAR, color=fill, edgecolor=gap, linewidth=0.5)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    axes.set_xlim(0, limits(totals, log=False, room=0.02)[1])
    along_x(axes, ticks)
    canvas.legend([(part, Patch(color=light(roles[part]))) for part in parts], LEGEND_COLUMNS)


def _named_axes(canvas: Canvas, stacks: Sequence[Stack], *, foot: int) -> Axes:
    """Return axes with bar k at y = k from the top, and ``foot`` px below the axis for a legend."""
    axes = canvas.axes(bottom_px=22 + foot, top_px=2)
    axes.set_ylim(len(stacks) - 0.52, -0.62)
    axes.set_yticks([])
    for number, stack in enumerate(stacks):
        place: dict[str, Any] = {"y": number - 0.22, "va": "bottom", "transform": axes.get_yaxis_transform()}
        name = cut(legible(stack.name), max(SHORTEST_NAME, TEXT_COLUMNS - width(stack.amount)))
        axes.text(x=0, s=name, ha="left", color=light(INK), size=FONT, **place)
        axes.text(x=1, s=legible(stack.amount), ha="right", color=light(MUTED), size=FONT - 1, **place)
    return axes
