"""Histograms and curves over a logarithmic axis, drawn by plotext."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import RenderResult
from textual.color import Color
from textual_plotext import PlotextPlot

from taxtui.report.numbers import compact, short_duration

TICK_COLUMNS: Final = 12
"""Columns between two labels across. A label at an end moves inwards by half its length."""
LEAST_SIZE: Final = (24, 5)
"""Columns and lines of the smallest chart."""
MARGIN: Final = 1.02
"""Factor between the outermost value and the end of the axis."""
MANTISSAS: Final = (
    (1.0,),
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    *([1 + step * number for number in range(round(9 / step))] for step in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)),
)
"""First digits of round numbers, from few to many."""


class ChartCurve(NamedTuple):
    """A curve, or the bars of a histogram, with the name in the legend."""

    name: str
    colour: str  # #rrggbb
    points: Sequence[tuple[float, float]]  # a value above 0 across, and a height
    show: Callable[[float], str] = compact  # returns the label of a height
    side: Literal["left", "right"] = "left"  # of the axis with the heights
    bars: bool = False


class Chart(PlotextPlot):
    """Curves in common limits, and a legend."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.curves: Sequence[ChartCurve] = ()
        self._marks: Sequence[float] = ()
        self._across: Callable[[float], str] = short_duration
        self._empty = ""
        self._drawn: object = None

    def present(
        self,
        title: str,
        curves: Sequence[ChartCurve],
        marks: Sequence[float] = (),
        *,
        across: Callable[[float], str] = short_duration,
        empty: str = "",
    ) -> None:
        """Draw curves, and vertical lines at ``marks``.

        Args:
            title: the heading.
            curves: the curves; the legend names curves without points too.
            marks: values across.
            across: returns the label of a value across.
            empty: the text without any point.
        """
        drawn = title, curves, marks, empty
        if drawn != self._drawn:
            self._drawn, self.curves, self._marks, self._across, self._empty = drawn, curves, marks, across, empty
            self.border_title = Text(title)  # this refreshes the widget

    def render(self) -> RenderResult:
        width, height = self.size
        curves = [curve for curve in self.curves if curve.points]
        if not curves:
            return Text(self._empty, Style(dim=True))
        if width < LEAST_SIZE[0] or height < LEAST_SIZE[1]:
            return Text("no room for the chart", Style(dim=True))
        plot = self.plt
        plot.clear_figure()
        plot.theme("clear")
        plot.plotsize(width, height - 1)
        plot.xaxes(True, False)
        plot.yaxes(True, any(curve.side == "right" for curve in curves))
        across = [value for curve in curves for value, _ in curve.points]
        low, high = min(across) / MARGIN, max(across) * MARGIN
        values = round_values(low, high, width // TICK_COLUMNS)
        plot.xlim(math.log10(low), math.log10(high))
        values = spaced(values, TICK_COLUMNS / width * math.log10(high / low))
        plot.xticks([math.log10(value) for value in values], [self._across(value) for value in values])
        for number, side in enumerate(("left", "right"), start=1):
            self._scale(number, [curve for curve in curves if curve.side == side])
        for curve in curves:
            points = [math.log10(value) for value, _ in curve.points], [up for _, up in curve.points]
            colour = Color.parse(curve.colour).rgb
            if curve.bars:
                plot.bar(*points, width=1, color=colour, reset_ticks=False)
            else:
                plot.plot(*points, marker="braille", color=colour, yside=curve.side)
        for mark in self._marks:
            if low <= mark <= high:
                plot.vline(math.log10(mark))
        return Text("\n", no_wrap=True, overflow="ellipsis").join([self._legend(), Text.from_ansi(plot.build())])

    def _scale(self, side: int, curves: Sequence[ChartCurve]) -> None:
        """Set the limits and the labels of a vertical axis, from 0 on; ``side`` is 1 on the left and 2 on the right."""
        if curves:
            top = max(up for curve in curves for _, up in curve.points) or 1.0
            self.plt.ylim(0, top, side)
            labels = {curves[0].show(up): up for up in (top / 2, 0.0, top)}  # each label once
            self.plt.yticks(list(labels.values()), list(labels), side)

    def _legend(self) -> Text:
        names = [Text(curve.name, Style(color=curve.colour)) for curve in self.curves]
        return Text("  ").join(names)


def round_values(low: float, high: float, limit: int) -> list[float]:
    """Return at most ``limit`` round numbers between two values."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values: list[float] = []
    for mantissas in reversed(MANTISSAS):  # from many to few
        every = [digits * 10.0**decade for decade in decades for digits in mantissas]
        fitting = [value for value in every if low <= value <= high]
        if not fitting:
            break
        values = fitting
        if len(values) <= limit:
            return values
    return values[:: math.ceil(len(values) / limit)] if values else []


def spaced(values: Sequence[float], decades: float) -> list[float]:
    """Return the values that are at least so many ``decades`` above the one before, and the first.

    plotext places labels in an order that differs from process to process, so no label may be in another's place.
    """
    kept: list[float] = []
    for value in values:
        if not kept or math.log10(value / kept[-1]) >= decades:
            kept.append(value)
    return kept
