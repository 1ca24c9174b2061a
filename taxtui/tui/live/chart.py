"""The histograms and the phases of the Live screen: substrates with the workload of the chosen cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import RenderResult
from textual.color import Color
from textual_plotext import PlotextPlot

from taxtui.live.cell_state import CellState, TrialInFlight
from taxtui.live.histogram import LogHistogram
from taxtui.live.state import RunState
from taxtui.report.bars import Bar
from taxtui.report.numbers import CLOSED_LOOP, short_duration
from taxtui.terminal_text import clean
from taxtui.tui.colours import colour, glyph
from taxtui.tui.live.panels import workload
from taxtui.tui.stacked_bars import StackedBars

TICK_COLUMNS: Final = 12
"""Columns between two labels across."""
LEAST_SIZE: Final = (24, 5)
"""Columns and lines of the smallest chart."""
MARGIN: Final = 1.02
"""Factor between the outermost value and the end of the axis."""
MOST_COLUMNS: Final = 40
LEAST_COLUMNS: Final = 12


class ChartCurve(NamedTuple):
    """A histogram with its name in the legend."""

    name: str
    colour: str  # #rrggbb
    points: Sequence[tuple[float, float]]  # outline: duration in ns, number of values in the column


class Chart(PlotextPlot):
    """Outlines of histograms over a logarithmic axis of durations, and a legend."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.curves: Sequence[ChartCurve] = ()
        self._empty = ""
        self._drawn: object = None

    def present(self, title: str, curves: Sequence[ChartCurve], *, empty: str = "") -> None:
        """Draw curves; ``empty`` is the text without any point."""
        drawn = title, curves, empty
        if drawn != self._drawn:
            self._drawn, self.curves, self._empty = drawn, curves, empty
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
        plot.yaxes(True, False)
        durations = [duration for curve in curves for duration, _ in curve.points]
        low, high = min(durations) / MARGIN, max(durations) * MARGIN
        plot.xlim(math.log10(low), math.log10(high))
        number = max(2, width // TICK_COLUMNS)
        ticks = [low * (high / low) ** ((place + 0.5) / number) for place in range(number)]
        plot.xticks([math.log10(tick) for tick in ticks], [short_duration(tick) for tick in ticks])
        top = max(count for curve in curves for _, count in curve.points)
        plot.ylim(0, top)
        labels = {f"{count:,.0f}": count for count in (top / 2, 0.0, top)}  # each label once
        plot.yticks(list(labels.values()), list(labels))
        for curve in curves:
            across, counts = zip(*curve.points, strict=True)
            plot.plot(
                list(map(math.log10, across)), list(counts), marker="braille", color=Color.parse(curve.colour).rgb
            )
        legend = Text(" ").join(Text(curve.name, Style(color=curve.colour)) for curve in self.curves)
        legend.truncate(width, overflow="ellipsis")
        return Text("\n", no_wrap=True, overflow="ellipsis").join([legend, Text.from_ansi(plot.build())])


def outlines(histograms: Sequence[LogHistogram]) -> list[list[tuple[float, float]]]:
    """Return the outline of each histogram, in common columns of equal width on a logarithmic axis."""
    filled = [histogram for histogram in histograms if histogram.n]
    if not filled:
        return [[] for _ in histograms]
    most = max(histogram.n for histogram in filled)
    number = min(MOST_COLUMNS, max(LEAST_COLUMNS, round(8 * math.sqrt(most))))  # few values need wide columns
    low = max(1.0, min(histogram.shortest for histogram in filled))
    high = max(1.0, max(histogram.longest for histogram in filled))
    if high / low < 1.1:  # a single value is in the middle
        low, high = low / 1.05, high * 1.06
    step = (high / low) ** (1 / number)
    edges = [low * step**place for place in range(number + 1)]
    return [_outline(histogram.columns(number, low, high), edges) if histogram.n else [] for histogram in histograms]


def _outline(counts: Sequence[float], edges: Sequence[float]) -> list[tuple[float, float]]:
    """Return the top edge of each column, and both ends on the axis."""
    tops = [(edge, count) for place, count in enumerate(counts) for edge in edges[place : place + 2]]
    return [(edges[0], 0.0), *tops, (edges[-1], 0.0)]


def paint_chart(chart: Chart, state: RunState, chosen: CellState | None, facet: str) -> None:
    """Show the histograms of a duration, of all substrates with the workload of the chosen cell."""
    cells = list(state.cells.values())
    alike = [cell for cell in cells if chosen and same_workload(cell, chosen)]
    points = outlines([cell.facets[facet] for cell in alike])
    curves = [
        ChartCurve(f"{glyph(cell.label)} {clean(cell.label)}", colour(cell.label), outline)
        for cell, outline in zip(alike, points, strict=True)
    ]
    name = f" · {workload(chosen, cells)}" if chosen else ""
    chart.present(f"{facet.replace('_', ' ')}{name}", curves, empty=waiting(state, chosen, facet))


def paint_phases(bars: StackedBars, cells: Sequence[CellState], chosen: CellState | None) -> None:
    """Show the mean trial by phase, of the cells with the workload of the chosen cell."""
    alike = [cell for cell in cells if chosen and cell.ok and same_workload(cell, chosen)]
    title = f"mean trial of {workload(chosen, cells)} by phase" if chosen else "phases"
    rows = [(cell, cell.mean_parts_ns()) for cell in alike]
    bars.present(
        title,
        [Bar(cell.label, cell.label, cell.mode, parts, short_duration(sum(parts.values()))) for cell, parts in rows],
        empty="the mean time of a trial by phase, after the first trial",
    )


def same_workload(a: CellState, b: CellState) -> bool:
    """Whether two cells have equal workloads."""
    return (a.tier, a.actions, a.length, a.mode, a.concurrency) == (b.tier, b.actions, b.length, b.mode, b.concurrency)


def waiting(state: RunState, cell: CellState | None, facet: str) -> str:
    """Return the reason for an empty chart, the trials in flight, and the last notice."""
    name = f" of {cell.label}" if cell else ""
    lines = [f"waiting for the first trial{name} to finish …"]
    if cell and cell.ok:
        lines = [CLOSED_LOOP if facet == "response" else "not known for this cell"]
    elif cell and state.outcome is not None:
        lines = [f"no trial{name} has succeeded"]
    lines += [_progress_of(key, trial) for key, trial in list(state.open.items())[-2:]]
    notices = [line.text for line in state.log if line.trial is None]
    return "\n".join(lines + notices[-1:])


def _progress_of(key: int, trial: TrialInFlight) -> str:
    doing = clean(trial.doing).replace("_", " ")
    return f"#{key} past {doing}" if doing else f"#{key} being created"
