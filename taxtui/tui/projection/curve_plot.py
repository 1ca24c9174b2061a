"""How a projection moves with the number of workers or actions, one line per substrate, and what to see on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import RenderResult
from textual.color import Color
from textual_plotext import PlotextPlot

from costmodel.analysis.sensitivity import Axis, Curve, Point
from taxtui.terminal_text import clean
from taxtui.tui.colours import colour, glyph, substrate_style

VALUES: Final[dict[Axis, str]] = {
    "trajectories": "worker-hours",
    "workers": "wall-clock hours",
    "actions": "trajectory seconds",
}
LEGEND_ROWS: Final = 1


class CurvePlot(PlotextPlot):
    """Both axes are logarithmic; marks stand where the form stands and where something happens."""

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without curves."""
        super().__init__(id=id)
        self.curves: Sequence[Curve] = ()
        self.axis: Axis = "actions"
        self.marks: Sequence[float] = ()
        self.empty = ""

    def present(self, curves: Sequence[Curve], axis: Axis, marks: Sequence[float], empty: str = "") -> None:
        """Draw these with ``marks`` on the axis across; ``empty`` says why there are none."""
        self.curves, self.axis, self.marks, self.empty = curves, axis, marks, empty
        self.refresh()

    def render(self) -> RenderResult:
        """A legend, then the lines with round numbers on both axes."""
        width, height = self.size
        rows = height - LEGEND_ROWS
        lines = [_Line(curve, points) for curve in self.curves if (points := _points(curve, self.axis))]
        if not lines or rows < 4 or width < 20:
            return Text(self.empty, Style(dim=True))
        dark = self.app.current_theme.dark
        self.plt.clear_figure()
        self.plt.plotsize(width, rows)
        self.plt.theme("clear")
        self.plt.xaxes(True, False)
        self.plt.yaxes(True, False)
        across = [x for line in lines for x, _ in line.points]
        up = [y for line in lines for _, y in line.points]
        self.plt.xlim(*_limits(across))
        self.plt.ylim(*_limits(up))
        self.plt.xticks(*_ticks(*_limits(across), width // 9))
        self.plt.yticks(*_ticks(*_limits(up), rows // 2))
        for line in lines:
            rgb = Color.parse(colour(line.curve.label, dark=dark)).rgb
            self.plt.plot(*zip(*line.points, strict=True), marker="braille", color=rgb)
        low, high = _limits(across)
        for mark in self.marks:
            if mark > 0 and low <= math.log10(mark) <= high:
                self.plt.vline(math.log10(mark))
        return Text("\n").join([self._legend(lines, dark), Text.from_ansi(self.plt.build())])

    def _legend(self, lines: Sequence[_Line], dark: bool) -> Text:
        legend = Text()
        for line in lines:
            style = substrate_style(line.curve.label, dark=dark)
            legend.append(f"{glyph(line.curve.label)} {clean(line.curve.label)}  ", style)
        return legend


class _Line(NamedTuple):
    curve: Curve
    points: list[tuple[float, float]]


def _points(curve: Curve, axis: Axis) -> list[tuple[float, float]]:
    """(log10 of where, log10 of the value); what has no number or is 0 is left out."""
    return [
        (math.log10(point.at), math.log10(value)) for point in curve.points if (value := _value(point, axis) or 0) > 0
    ]


def _value(point: Point, axis: Axis) -> float | None:
    match axis:
        case "trajectories":
            return point.worker_hours
        case "workers":
            return point.wall_clock_hours
        case "actions":
            return point.trajectory_s


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis, apart from each other."""
    return min(values), max(max(values), min(values) + 0.01)


def _ticks(low: float, high: float, most: int) -> tuple[list[float], list[str]]:
    """Where an axis of logarithms has round numbers, as many as ``most``, and what they are."""
    decades = range(math.floor(low), math.ceil(high) + 1)
    best: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(n / 10 for n in range(10, 100, 5))):
        values = [step * 10.0**decade for decade in decades for step in steps]
        fitting = [value for value in values if low - 1e-9 <= math.log10(value) <= high + 1e-9]
        if len(best) < len(fitting) <= max(2, most):
            best = fitting
    return [math.log10(value) for value in best], [_brief(value) for value in best]


def _brief(value: float) -> str:
    """``0.02 5 150 2k 1M``."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale * 0.9999:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"
