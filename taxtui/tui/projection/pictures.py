"""Pictures of a projection: costs by cause, times by cause, and trajectory time over actions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final, Literal, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult, RenderResult
from textual.color import Color
from textual.containers import Vertical
from textual_plotext import PlotextPlot

from costmodel import Answer, BreakEven, Curve, WorkLine, break_even
from taxtui.report.bars import Bar
from taxtui.report.numbers import compact, money, number
from taxtui.report.projected.attributed import unit_of
from taxtui.terminal_text import clean
from taxtui.tui.background import Newest
from taxtui.tui.colours import colour, glyph, substrate_style
from taxtui.tui.projection.model import Answered, CurveAsked, curves
from taxtui.tui.stacked_bars import UNKNOWN, StackedBars, cause_bars, causes_title

Picture = Literal["cost", "causes", "actions"]
MAX_CURVES: Final = 6


class Crossing(NamedTuple):
    """Two substrates and the number of actions with equal occupied time."""

    first: str
    second: str
    at: BreakEven


class PicturePanel(Vertical):
    """A picture of the workload under the cursor; ``next`` shows another picture."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chosen: Picture | None = None
        self._answered: Answered | None = None
        self._answer: Answer | None = None
        self._line: WorkLine | None = None

    def compose(self) -> ComposeResult:
        yield CurvePlot(id="curves")
        yield StackedBars(id="bars")

    def on_mount(self) -> None:
        self._curved: Newest[CurveAsked, list[Curve]] = Newest(
            curves, self._draw, lambda _, reason: self._present([], reason), on=self
        )

    def on_unmount(self) -> None:
        self._curved.close()

    @property
    def busy(self) -> bool:
        return self._curved.busy

    @property
    def pictures(self) -> list[Picture]:
        return ["cost", "causes", "actions"] if cost_bars(self._line) else ["causes", "actions"]

    @property
    def picture(self) -> Picture:
        return self.chosen if self.chosen in self.pictures else self.pictures[0]

    def next(self) -> None:
        pictures = self.pictures
        self.chosen = pictures[(pictures.index(self.picture) + 1) % len(pictures)]
        self.show(self._answered, self._answer, self._line)

    def show(self, answered: Answered | None, answer: Answer | None, line: WorkLine | None) -> None:
        self._answered, self._answer, self._line = answered, answer, line
        plot, bars = self.query_one(CurvePlot), self.query_one(StackedBars)
        plot.display, bars.display = self.picture == "actions", self.picture != "actions"
        if answered is None or answer is None or line is None:
            plot.border_title = "picture"
            plot.present([], ())
            bars.present("picture", [])
        elif self.picture == "cost":
            bars.present(cost_title(line), cost_bars(line))
        elif self.picture == "causes":
            bars.present(causes_title(answer, line), cause_bars(answer, line), empty=UNKNOWN)
        else:
            self._curved.ask(CurveAsked(answered, line.entries[0].row.identity))

    def _draw(self, request: CurveAsked, answer: list[Curve]) -> None:
        self._present(answer, "no curve for this workload")

    def _present(self, answer: list[Curve], empty: str) -> None:
        if self._line is None:
            return
        work, plot, shared = self._line.work, self.query_one(CurvePlot), crossings(self._line)
        wanted = (work.tier, work.mode, work.concurrency)
        alike = [
            curve
            for curve in answer
            if (curve.identity.tier, curve.identity.mode, curve.identity.concurrency) == wanted
        ]
        marks = [float(work.actions), *(float(first.at.actions) for first in shared if first.at.actions)]
        title = f"trajectory seconds over actions · {clean(f'{work.tier} {work.mode}')}"
        plot.border_title = Text(" · ".join(filter(None, [break_even_words(self._line, shared), title])))
        plot.present(alike[:MAX_CURVES], marks, empty)


class CurvePlot(PlotextPlot):
    """Curves on two logarithmic axes, with vertical marks at the length of the workload and at break-evens."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.curves: Sequence[Curve] = ()
        self.marks: Sequence[float] = ()
        self.empty = ""

    def present(self, curves: Sequence[Curve], marks: Sequence[float], empty: str = "") -> None:
        """Draw curves, and marks on the horizontal axis; ``empty`` is the text without any curve."""
        self.curves, self.marks, self.empty = curves, marks, empty
        self.refresh()

    def render(self) -> RenderResult:
        width, height = self.size
        rows = height - 1
        lines = [_Line(curve, points) for curve in self.curves if (points := _points(curve))]
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


def _points(curve: Curve) -> list[tuple[float, float]]:
    """Return log10 of actions and seconds of the points with known seconds."""
    points = [(point.actions, point.trajectory_s or 0.0) for point in curve.points]
    return [(math.log10(actions), math.log10(seconds)) for actions, seconds in points if seconds > 0]


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Return the two ends of an axis, never equal."""
    return min(values), max(max(values), min(values) + 0.01)


def _ticks(low: float, high: float, limit: int) -> tuple[list[float], list[str]]:
    """Return the logarithms of at most ``limit`` round numbers on an axis, and their labels."""
    decades = range(math.floor(low), math.ceil(high) + 1)
    best: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(n / 10 for n in range(10, 100, 5))):
        values = [step * 10.0**decade for decade in decades for step in steps]
        fitting = [value for value in values if low - 1e-9 <= math.log10(value) <= high + 1e-9]
        if len(best) < len(fitting) <= max(2, limit):
            best = fitting
    return [math.log10(value) for value in best], [_brief(value) for value in best]


def _brief(value: float) -> str:
    """``0.02 5 150 2k 1M``."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale * 0.9999:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def crossings(line: WorkLine) -> list[Crossing]:
    """Return the pairs of substrates with a break-even length."""
    rows = [entry for entry in line.entries if entry.row.evidence is not None]
    answer = [(first, second, break_even(first.row, second.row)) for first, second in combinations(rows, 2)]
    return [
        Crossing(clean(first.place.name), clean(second.place.name), at)
        for first, second, at in answer
        if at is not None and at.actions
    ]


def break_even_words(line: WorkLine, pairs: Sequence[Crossing]) -> str:
    """Return ``local = docker at 12 actions``, or "no break-even: …"; "" for a single substrate."""
    if pairs:
        return ", ".join(f"{first} = {second} at {number(at.actions)} actions" for first, second, at in pairs[:2])
    return "no break-even: the same is cheaper at every length" if len(line.entries) > 1 else ""


def cost_title(line: WorkLine) -> str:
    """Return the heading of the bars of a cost, with their unit."""
    units = [unit_of(entry.row.attribution).name for entry in line.entries if entry.row.attribution is not None]
    return f"cost of the sandbox{f' in {units[0]}' if units else ''} · {clean(line.name)}"


def cost_bars(line: WorkLine | None) -> list[Bar]:
    """Return the cost of the sandbox by cause, for a run in steps: in dollars with prices, else in hours."""
    if line is None:
        return []
    bars = []
    for entry in line.entries:
        answer = entry.row.attribution
        if answer is not None:
            unit = unit_of(answer)
            amounts = {cause: unit.of(share).value for cause, share in answer.causes.items() if share is not None}
            parts = {cause: amount for cause, amount in amounts.items() if amount > 0}
            show = money if unit.usd else compact
            whole = f"{show(unit.of(answer.sandbox).value)} of {show(unit.of(answer.run).value)}"
            bars.append(Bar(entry.place.label, entry.place.name, line.work.mode, parts, whole))
    return bars
