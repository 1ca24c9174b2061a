"""The charts of the Live screen: histograms, distribution functions, a sweep, and phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import RenderResult
from textual.color import Color
from textual.widget import Widget
from textual_plotext import PlotextPlot

from costmodel import breakdown
from taxtui.live.cell_state import FACETS, CellState, TrialInFlight
from taxtui.live.histogram import LogHistogram, lower
from taxtui.live.state import RunState
from taxtui.report.bars import Bar
from taxtui.report.numbers import CLOSED_LOOP
from taxtui.terminal_text import clean
from taxtui.tui import units
from taxtui.tui.colours import colour, glyph, substrate_style
from taxtui.tui.ladder_plot import LadderPlot, LadderPoint
from taxtui.tui.live.panels import workload
from taxtui.tui.stacked_bars import StackedBars

EIGHTHS: Final = "▁▂▃▄▅▆▇█"
RULE: Final = "┊"
TICK_SPACING: Final = 8  # columns
LEAST_BARS: Final = 12


class HistogramPlot(Widget):
    """A histogram of durations on a logarithmic axis."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.histogram = LogHistogram()
        self.colour = "#999999"
        self.empty = ""
        self.bounds: tuple[float, float] = (1.0, 10.0)
        self._drawn: tuple[object, ...] = ()

    def show(
        self, title: str, histogram: LogHistogram, colour: str, bounds: tuple[float, float], empty: str = ""
    ) -> None:
        """Draw a histogram over ``bounds`` (ns); ``empty`` is the text without values."""
        self.histogram, self.colour, self.bounds, self.empty = histogram, colour, bounds, empty
        drawn = (title, histogram.n, histogram.total, colour, bounds, empty)
        if drawn != self._drawn:
            self._drawn = drawn
            self.border_title = Text(title)  # this refreshes the widget

    def render(self) -> RenderResult:
        width, height = self.size
        rows = height - 2
        if width < TICK_SPACING or rows < 1:
            return Text()
        if not self.histogram.n:
            return Text(self.empty, Style(dim=True))
        # few values need wide bars, or the histogram looks like a comb
        bars = min(width, max(LEAST_BARS, round(8 * math.sqrt(self.histogram.n))))
        shares = self.histogram.columns(bars, *self.bounds)
        columns = [shares[place * bars // width] for place in range(width)]
        marks = {
            name: units.column(self.histogram.quantile(q), *self.bounds, width)
            for name, q in units.QUANTILES.items()
            if self.histogram.n >= units.NEEDED[name]
        }
        body = self._bars(columns, rows, set(marks.values()))
        return Text("\n").join([self._names(marks, width), body, self._axis(width)])

    def _bars(self, columns: list[float], rows: int, rules: set[int]) -> Text:
        """Draw a column of eighths for each share, and dotted rules above the bars."""
        peak = max(columns)
        # every share above 0 has at least an eighth, so that outliers are visible
        heights = [max(1, round(share / peak * rows * 8)) if share > 0 else 0 for share in columns]
        lines = [
            "".join(
                _block(height - row * 8) or (RULE if place in rules else " ") for place, height in enumerate(heights)
            )
            for row in reversed(range(rows))
        ]
        body = Text("\n".join(lines), Style(color=self.colour))
        body.highlight_regex(RULE, Style(dim=True))
        return body

    def _names(self, marks: dict[str, int], width: int) -> Text:
        """Return ``╷p50   ╷p95``; overlapping names are joined by a dot."""
        line = [" "] * width
        end = -1
        for name, place in sorted(marks.items(), key=lambda mark: (mark[1], mark[0])):
            if not 0 <= place < width:
                continue
            label = f"╷{name}"
            if place <= end:  # directly after the name before
                label = f"·{name}"
                place = end + 1
            if place + len(label) > width:
                label = f"{name}╷"
                place -= len(name)
                if place <= end:
                    continue
            line[place : place + len(label)] = label
            end = place + len(label) - 1
        count = f"n={self.histogram.n:,}"
        if end + 2 + len(count) <= width:
            line[-len(count) :] = count
        return Text("".join(line), Style(dim=True))

    def _axis(self, width: int) -> Text:
        """Return ``╵400ms    ╵600ms    ╵1s``."""
        line = [" "] * width
        for value in units.ticks(*self.bounds, width, TICK_SPACING):
            label = f"╵{units.tick(value)}"
            place = units.column(value, *self.bounds, width)
            line[place : place + len(label)] = label
        return Text("".join(line), Style(dim=True))


def _block(eighths: int) -> str:
    return EIGHTHS[min(eighths, 8) - 1] if eighths > 0 else ""


def view(histogram: LogHistogram) -> tuple[float, float]:
    """Return the bounds of all values in ns; a single value is in the middle."""
    low, high = max(1.0, histogram.least), max(1.0, histogram.greatest)
    return (low / 1.05, high * 1.06) if high / low < 1.1 else (low, high)


ECDF_TICK_SPACING: Final = 9  # columns
SHARES: Final = (0.0, 0.5, 0.95, 1.0)
EDGE: Final = 1.02  # beyond the least and the greatest


class EcdfLine(NamedTuple):
    """A substrate with a histogram of durations in ns."""

    label: str
    histogram: LogHistogram


class EcdfPlot(PlotextPlot):
    """Empirical distribution functions on a logarithmic time axis."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[EcdfLine] = ()
        self._drawn: object = None

    def show(self, title: str, lines: Sequence[EcdfLine]) -> None:
        """Draw lines; the legend alone names lines without a value."""
        drawn = title, [(line.label, line.histogram.n, line.histogram.total) for line in lines]
        if drawn != self._drawn:
            self.lines, self._drawn = lines, drawn
            self.border_title = Text(title)  # this refreshes the widget

    def render(self) -> RenderResult:
        width, height = self.size
        histograms = [line.histogram for line in self.lines if line.histogram.n]
        if not histograms or height < 5 or width < 3 * ECDF_TICK_SPACING:
            return Text("\n").join([self._legend(), Text("no value yet", Style(dim=True))])
        low = max(1.0, min(histogram.least for histogram in histograms)) / EDGE
        high = max(2.0, max(histogram.greatest for histogram in histograms)) * EDGE
        self.plt.clear_figure()
        self.plt.plotsize(width, height - 1)
        self.plt.theme("clear")
        self.plt.xaxes(True, False)
        self.plt.yaxes(True, False)
        self.plt.xlim(math.log10(low), math.log10(high))
        self.plt.ylim(0, 1)
        ticks = list(units.ticks(low, high, width, ECDF_TICK_SPACING))
        self.plt.xticks([math.log10(value) for value in ticks], [units.tick(value) for value in ticks])
        self.plt.yticks(list(SHARES), [f"{share:.0%}" for share in SHARES])
        dark = self.app.current_theme.dark
        for line in self.lines:
            if line.histogram.n:
                rgb = Color.parse(colour(line.label, dark=dark)).rgb
                across, up = steps(line.histogram)
                self.plt.plot([math.log10(value) for value in across], up, marker="braille", color=rgb)
        return Text("\n").join([self._legend(), Text.from_ansi(self.plt.build())])

    def _legend(self) -> Text:
        legend, dark = Text(no_wrap=True, overflow="ellipsis"), self.app.current_theme.dark
        for line in self.lines:
            legend.append(f"{glyph(line.label)} {clean(line.label)}", substrate_style(line.label, dark=dark))
            legend.append(f" n={line.histogram.n:,}  ", Style(dim=True))
        return legend


def steps(histogram: LogHistogram) -> tuple[list[float], list[float]]:
    """Return the points of a line: durations in ns, and the share of values up to each duration."""
    indices = sorted(histogram.counts)
    reached = accumulate(histogram.counts[index] for index in indices)
    shortest = max(1.0, float(histogram.least))
    across, up = [shortest], [0.0]
    for index, count in zip(indices, reached, strict=True):
        across.append(max(shortest, float(min(lower(index + 1) - 1, histogram.greatest))))
        up.append(count / histogram.n)
    return across, up


def paint_charts(
    charts: tuple[HistogramPlot, HistogramPlot],
    state: RunState,
    chosen: CellState | None,
    facet: int,
    *,
    dark: bool,
    overlaid: bool,
) -> None:
    """Show two durations of the chosen cell; ``overlaid``: a third chart shows all substrates."""
    cells, cell = list(state.cells.values()), chosen
    for chart, which in zip(charts, (facet, (facet + 1) % len(FACETS)), strict=True):
        title = FACETS[which].replace("_", " ")
        limits = view(cell.facets[FACETS[which]]) if cell else (1.0, 10.0)
        if cell is None:
            chart.show(title, LogHistogram(), "#999999", limits, waiting(state, None, FACETS[which]))
            continue
        like = sum(same_workload(peer, cell) for peer in cells)
        hint = f" · 1 of {like}, v all" if like > 1 and not overlaid else ""
        chart.show(
            f"{title} · {cell.label} {workload(cell, cells)}{hint}",
            cell.facets[FACETS[which]],
            colour(cell.label, dark=dark),
            limits,
            waiting(state, cell, FACETS[which]),
        )


def paint_overlay(plot: EcdfPlot, state: RunState, chosen: CellState | None, facet: int) -> bool:
    """Show a duration of all substrates with the workload of the chosen cell; False for a single substrate."""
    cells = list(state.cells.values())
    like = [cell for cell in cells if chosen and same_workload(cell, chosen)]
    if chosen is None or len(like) < 2:
        return False
    title = f"{FACETS[facet].replace('_', ' ')} · {workload(chosen, cells)} · share done by then, of all {len(like)}"
    plot.show(title, [EcdfLine(cell.label, cell.facets[FACETS[facet]]) for cell in like])
    return True


def paint_ladder(plot: LadderPlot, state: RunState, chosen: CellState | None) -> bool:
    """Show the concurrency sweep of the chosen cell; False for a single concurrency."""
    like = [cell for cell in state.cells.values() if chosen and _differ_in_concurrency(cell, chosen)]
    if chosen is None or len({cell.concurrency for cell in like}) < 2:
        return False
    points = [
        LadderPoint(
            cell.concurrency,
            cell.rates.per_s(cell.concurrency) * cell.mean_actions,
            cell.facets["action"].quantile(0.95) if cell.ok else 0.0,
        )
        for cell in sorted(like, key=lambda cell: cell.concurrency)
    ]
    plot.present(f"{chosen.label} {chosen.workload} · v one concurrency", points)
    return True


def _differ_in_concurrency(a: CellState, b: CellState) -> bool:
    """Whether two cells differ in concurrency only, without a schedule of starts."""
    fields = ("label", "tier", "actions", "length", "mode", "think", "acquire", "provenance")
    return not breakdown.has_schedule(a.arrival) and all(getattr(a, name) == getattr(b, name) for name in fields)


def paint_phases(bars: StackedBars, cells: Sequence[CellState], chosen: CellState | None) -> None:
    """Show the mean trial by phase, of the cells with the workload of the chosen cell."""
    alike = [cell for cell in cells if chosen and cell.ok and same_workload(cell, chosen)]
    title = f"mean trial of {workload(chosen, cells)} by phase" if chosen else "phases"
    rows = [(cell, cell.mean_parts_ns()) for cell in alike]
    bars.present(
        title,
        [Bar(cell.label, cell.label, cell.mode, parts, units.duration(sum(parts.values()))) for cell, parts in rows],
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
