"""A picture of lines, one below the other: each has its name and its value above its mark, so both fit a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from matplotlib.axes import Axes

from taxtui.report.page.palette import INK, MUTED, light
from taxtui.report.page.sheet import FONT, Sheet, legible
from taxtui.terminal_text import cut, width

LINE: Final = 33
COLUMNS: Final = 58
"""Columns of a name and a value together."""
LEAST: Final = 12
BAR: Final = 0.36
"""Share of a line's height."""


class MarkLine(NamedTuple):
    """The text above a mark: its name on the left, its amount on the right."""

    name: str
    told: str


def lines_axes(sheet: Sheet, lines: Sequence[MarkLine], *, foot: int) -> Axes:
    """Axes on which line k has its mark at y = k, from the top; ``foot`` is left free below the axis' own words."""
    axes = sheet.axes(bottom=22 + foot, top=2)
    axes.set_ylim(len(lines) - 0.52, -0.62)
    axes.set_yticks([])
    for number, line in enumerate(lines):
        place: dict[str, Any] = {"y": number - 0.22, "va": "bottom", "transform": axes.get_yaxis_transform()}
        name = cut(legible(line.name), max(LEAST, COLUMNS - width(line.told)))
        axes.text(x=0, s=name, ha="left", color=light(INK), size=FONT, **place)
        axes.text(x=1, s=legible(line.told), ha="right", color=light(MUTED), size=FONT - 1, **place)
    return axes


def lines_height(count: int, foot: int) -> int:
    """Return the height of a panel with this number of lines."""
    return LINE * count + 24 + foot
