"""A concurrency sweep as two curves: throughput, and p95 of an action."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import RenderResult
from textual.color import Color
from textual_plotext import PlotextPlot

from taxtui.tui import units

BRIEF: Final = 40  # columns: with fewer the legend is short
LEFT: Final = 1
RIGHT: Final = 2
COLOURS: Final = {LEFT: (86, 180, 233), RIGHT: (230, 159, 0)}
"""Colours of the two curves, distinguishable by colour-blind readers."""


class LadderPoint(NamedTuple):
    """Throughput and action p95 at one concurrency."""

    at_a_time: int
    actions_per_s: float
    p95_ns: float


class LadderPlot(PlotextPlot):
    """Throughput on the left axis, latency on the right axis, concurrency across on a logarithmic axis."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.points: Sequence[LadderPoint] = ()
        self._drawn: object = None
        self.knee: float | None = None

    def present(self, title: str, points: Sequence[LadderPoint], knee: float | None = None) -> None:
        """Draw points in ascending concurrency, with a vertical line at the saturation point ``knee``."""
        drawn = title, tuple(points), knee
        if drawn != self._drawn:
            self.points, self.knee, self._drawn = points, knee, drawn
            self.border_title = Text(title)  # this refreshes the widget

    def _draw(self, across: Sequence[float], values: Sequence[float], side: int) -> None:
        """Draw a curve and an axis from 0 to the greatest value."""
        greatest = max(values)
        self.plt.plot(across, values, marker="braille", color=COLOURS[side], yside="left" if side == LEFT else "right")
        self.plt.ylim(0, greatest * 1.05, side)
        places = [0.0, greatest / 2, greatest]
        self.plt.yticks(places, [units.duration(v) if v and side == RIGHT else f"{v:.3g}" for v in places], side)

    def render(self) -> RenderResult:
        width, height = self.size
        points = [point for point in self.points if point.actions_per_s > 0 and point.p95_ns > 0]
        if len(points) < 2 or height < 5 or width < 24:
            text = "the curve, once two levels have finished a trial" if len(points) < 2 else "no room for the curve"
            return Text(text, Style(dim=True))
        self.plt.clear_figure()
        self.plt.plotsize(width, height - 1)
        self.plt.theme("clear")
        across = [math.log2(point.at_a_time) for point in points]
        self.plt.xlim(across[0], across[-1])
        self._draw(across, [point.actions_per_s for point in points], LEFT)
        self._draw(across, [point.p95_ns for point in points], RIGHT)
        room = max(1, (width - 14) // 5)
        labelled = points[:: -(-len(points) // room)]
        self.plt.xticks(
            [math.log2(point.at_a_time) for point in labelled], [f"{point.at_a_time:,}" for point in labelled]
        )
        if self.knee is not None and across[0] <= math.log2(self.knee) <= across[-1]:
            self.plt.vline(math.log2(self.knee))
        brief = width < BRIEF
        legend = Text.assemble(
            ("← actions/s", Style(color=Color(*COLOURS[LEFT]).hex)),
            "  ",
            ("p95 →" if brief else "p95 of an action →", Style(color=Color(*COLOURS[RIGHT]).hex)),
            "  │ knee" if self.knee is not None else "",
        )
        return Text("\n").join([legend, Text.from_ansi(self.plt.build())])
