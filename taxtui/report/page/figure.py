"""Figures as data, and the canvas that their panels draw on: axes with few lines, a legend below, labelled ticks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from taxtui.report.page.palette import INK, MUTED, RULE, SURFACE, light, style
from taxtui.report.page.scales import Tick
from taxtui.terminal_text import clean

WIDTH: Final = 400
FONT: Final = 10.0
LEGEND_ROW: Final = 17
DOTS_PER_INCH: Final = 72
_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")


class Canvas:
    """The area of one panel; lengths are px."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.figure = MatplotlibFigure(figsize=(WIDTH / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
        self.figure.patch.set_facecolor(light(SURFACE))

    def axes(self, *, left_px: int = 10, right_px: int = 12, top_px: int = 6, bottom_px: int = 36) -> Axes:
        """Return axes within these margins, with a line at the bottom only."""
        axes = self.figure.add_axes(
            (
                left_px / WIDTH,
                bottom_px / self.height,
                (WIDTH - left_px - right_px) / WIDTH,
                (self.height - top_px - bottom_px) / self.height,
            )
        )
        axes.set_facecolor("none")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(light(MUTED))
        axes.tick_params(colors=light(MUTED), labelcolor=light(MUTED), length=3, labelsize=FONT - 1)
        axes.set_axisbelow(True)
        return axes

    def legend(self, entries: Sequence[tuple[str, Line2D | Patch]], columns: int) -> None:
        """Draw names with their lines or colours at the bottom."""
        if entries:
            self.figure.legend(
                [artist for _, artist in entries],
                [legible(name) for name, _ in entries],
                loc="lower left",
                bbox_to_anchor=(2 / WIDTH, 0),
                ncols=columns,
                frameon=False,
                fontsize=FONT - 1,
                labelcolor=light(INK),
                borderaxespad=0,
                borderpad=0.2,
                handlelength=1.6,
                columnspacing=1.2,
            )


class Panel(NamedTuple):
    """One picture."""

    name: str  # unique within a page
    title: str
    about: str  # description for readers who cannot see the picture
    height: int  # px at a width of 400
    draw: Callable[[Canvas], None]
    provenance: str = ""  # IMPORTED, STAND-IN, PUBLISHED or COMPOSED; "" if measured


class Figure(NamedTuple):
    """Panels with a common caption."""

    name: str
    title: str
    panels: list[Panel]
    notes: list[str]


def legend_height(count: int, columns: int) -> int:
    """Return the height of a legend with this number of names."""
    return LEGEND_ROW * -(-count // columns) + 2


def legend_line(role: str, mode: str) -> Line2D:
    """Return the line of a substrate and a mode for a legend."""
    return Line2D([], [], color=light(role), linestyle=style(mode), linewidth=1.4)


def along_x(axes: Axes, ticks: Sequence[Tick]) -> None:
    """Set the ticks of the x axis, with a fine rule above each."""
    axes.set_xticks([tick.at for tick in ticks], [tick.label for tick in ticks])
    low, high = axes.get_xlim()
    for tick, label in zip(ticks, axes.get_xticklabels(), strict=True):
        if tick.at in (low, high):  # a centred label would reach over the edge
            label.set_horizontalalignment("left" if tick.at == low else "right")
    _rule(axes, "x")


def along_y(axes: Axes, ticks: Sequence[Tick]) -> None:
    """Set the ticks of the y axis, with a fine rule beside each."""
    axes.set_yticks([tick.at for tick in ticks], [tick.label for tick in ticks])
    _rule(axes, "y")


def _rule(axes: Axes, axis: Literal["x", "y"]) -> None:
    axes.minorticks_off()
    axes.grid(axis=axis, color=light(RULE), linewidth=0.6)


def legible(text: str) -> str:
    """Return a text without control characters and characters that are invalid in XML."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))
