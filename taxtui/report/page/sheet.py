"""The paper that panels are drawn on: axes with few lines, legends at the foot, ticks with words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from taxtui.report.page.palette import INK, MUTED, RULE, SURFACE, Look, light, style
from taxtui.report.page.scales import Tick
from taxtui.terminal_text import clean

WIDTH: Final = 400
FONT: Final = 10.0
LEGEND_ROW: Final = 17
TITLE: Final = 24
DOTS_PER_INCH: Final = 72
_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")


class FixedAxes(Axes):
    """Axes whose limits are told: what is drawn is not measured to find them, which takes a tenth of a panel."""

    def add_line(self, line: Line2D) -> Line2D:
        self.add_artist(line)
        return line

    def add_patch(self, p: Patch) -> Patch:
        self.add_artist(p)
        return p


class Sheet:
    """The paper that a panel is drawn on; lengths are px."""

    def __init__(self, height: int, title: str = "") -> None:
        """Empty paper, higher where it has a title."""
        self._above = TITLE if title else 0
        self.height = height + self._above
        self.canvas = Canvas(figsize=(WIDTH / DOTS_PER_INCH, self.height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
        self.canvas.patch.set_facecolor(light(SURFACE))
        if title:
            x, y = 8 / WIDTH, 1 - 15 / self.height
            self.canvas.text(x, y, legible(title), color=light(INK), size=FONT + 1, weight="bold")

    def axes(self, *, left: int = 10, right: int = 12, top: int = 6, bottom: int = 36) -> Axes:
        """Axes within these margins: a line below, and nothing else."""
        above = top + self._above
        axes = self.canvas.add_axes(
            (
                left / WIDTH,
                bottom / self.height,
                (WIDTH - left - right) / WIDTH,
                (self.height - above - bottom) / self.height,
            ),
            axes_class=FixedAxes,
        )
        axes.set_facecolor("none")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(light(MUTED))
        axes.tick_params(colors=light(MUTED), labelcolor=light(MUTED), length=3, labelsize=FONT - 1)
        axes.set_axisbelow(True)
        return axes

    def legend(self, entries: Sequence[tuple[str, Line2D | Patch]], columns: int) -> None:
        """Names beside their marks, at the foot of the paper."""
        if entries:
            self.canvas.legend(
                [mark for _, mark in entries],
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


def legend_height(count: int, columns: int) -> int:
    """Return the height of a legend with this number of names."""
    return LEGEND_ROW * -(-count // columns) + 2


def key(look: Look, mode: str, *, marked: bool = True) -> Line2D:
    """A legend's line."""
    marker = look.marker if marked else "none"
    return Line2D([], [], color=light(look.role), linestyle=style(mode), linewidth=1.4, marker=marker, markersize=4)


def along_x(axes: Axes, ticks: Sequence[Tick], label: str = "") -> None:
    """Ticks with their words below, a fine rule above each, and what the axis is."""
    axes.set_xticks([tick.at for tick in ticks], [tick.label for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_xlim()
    for tick, words in zip(ticks, axes.get_xticklabels(), strict=True):
        if tick.at in (low, high):  # or half of it were beyond the paper
            words.set_horizontalalignment("left" if tick.at == low else "right")
    axes.grid(axis="x", color=light(RULE), linewidth=0.6)
    if label:
        axes.set_xlabel(label, color=light(MUTED), fontsize=FONT - 1, labelpad=2)


def along_y(axes: Axes, ticks: Sequence[Tick], label: str = "") -> None:
    """The same for the other one."""
    axes.set_yticks([tick.at for tick in ticks], [tick.label for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=light(RULE), linewidth=0.6)
    if label:
        axes.set_title(label, loc="left", color=light(MUTED), fontsize=FONT - 1, pad=4, x=0)


def legible(text: str) -> str:
    """A text that XML can hold, clean of what steers a reader."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))
