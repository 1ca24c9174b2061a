"""The live histogram: log buckets drawn by plotext as cells of eighths, with percentile marks and a time axis."""

from __future__ import annotations

import math
import re
from typing import Final

from rich.style import Style
from rich.text import Text
from textual.app import RenderResult
from textual_plotext import PlotextPlot

from taxtui.live.histogram import LogHistogram
from taxtui.tui import units

EIGHTHS: Final = "▁▂▃▄▅▆▇█"
RULE: Final = "┊"
TICK_SPACING: Final = 8  # columns
LEAST_BARS: Final = 12
COLOUR_CODES: Final = re.compile(r"\x1b\[[0-9;]*m")


class HistogramPlot(PlotextPlot):
    """A histogram of durations on a logarithmic axis.

    plotext draws at cell indices: binning raw samples there would cost 192 ms a million, this costs a few ms whatever
    the count.
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Begin empty."""
        super().__init__(id=id)
        self.histogram = LogHistogram()
        self.colour = "#999999"
        self.empty = ""
        self.bounds: tuple[float, float] = (1.0, 10.0)
        self._drawn: tuple[object, ...] = ()

    def show(
        self, title: str, histogram: LogHistogram, colour: str, bounds: tuple[float, float], empty: str = ""
    ) -> None:
        """Draw this histogram over ``bounds`` (ns), if anything about it is new; ``empty`` says why there is none."""
        self.histogram, self.colour, self.bounds, self.empty = histogram, colour, bounds, empty
        drawn = (title, histogram.n, histogram.total, colour, bounds, empty)
        if drawn != self._drawn:
            self._drawn = drawn
            self.border_title = Text(title)  # which draws the rest anew too

    def render(self) -> RenderResult:
        """Percentile names, bars with dotted rules through them, and the axis."""
        width, height = self.size
        rows = height - 2
        if width < TICK_SPACING or rows < 1:
            return Text()
        if not self.histogram.n:
            return Text(self.empty, Style(dim=True))
        # few values in many columns are a comb: let each bar be as wide as their number deserves
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
        """Every cell that is not blank, at its column and row: one scatter with a glyph per point."""
        width, peak = len(columns), max(columns)
        cells: list[tuple[int, int, str]] = []
        for place, share in enumerate(columns):
            # what is there shows, however little: a lone outlier is what one looks for
            eighths = max(1, round(share / peak * rows * 8)) if share > 0 else 0
            full, rest = divmod(eighths, 8)
            cells += [(place, row, EIGHTHS[-1]) for row in range(full)]
            if rest:
                cells.append((place, full, EIGHTHS[rest - 1]))
            if place in rules:
                cells += [(place, row, RULE) for row in range(full + bool(rest), rows)]
        self.plt.clear_figure()
        self.plt.plotsize(width, rows)
        self.plt.frame(False)
        self.plt.xfrequency(0)
        self.plt.yfrequency(0)
        self.plt.xlim(0, width - 1)
        self.plt.ylim(0, max(rows - 1, 1))
        if cells:
            across, up, glyphs = map(list, zip(*cells, strict=True))
            self.plt.scatter(across, up, marker=glyphs)  # type: ignore[arg-type]  # plotext takes a glyph per point
        lines = COLOUR_CODES.sub("", self.plt.build()).split("\n")[:rows]
        body = Text("\n".join(line.ljust(width) for line in lines), Style(color=self.colour))
        body.highlight_regex(RULE, Style(dim=True))
        return body

    def _names(self, marks: dict[str, int], width: int) -> Text:
        """``╷p50   ╷p95``; names that would overlap share a place, the later after a slash."""
        line = [" "] * width
        end = -1
        for name, place in sorted(marks.items(), key=lambda mark: (mark[1], mark[0])):
            if not 0 <= place < width:
                continue
            label = f"╷{name}"
            if place <= end:  # right beside the one before
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
        """``╵400ms    ╵600ms    ╵1s``."""
        line = [" "] * width
        for value in units.ticks(*self.bounds, width, TICK_SPACING):
            label = f"╵{units.tick(value)}"
            place = units.column(value, *self.bounds, width)
            line[place : place + len(label)] = label
        return Text("".join(line), Style(dim=True))


def view(histogram: LogHistogram, zoom: int) -> tuple[float, float]:
    """The bounds in ns that a zoom shows: 0 = everything, each step halves the logarithmic range around the median."""
    low, high = max(1.0, histogram.least), max(1.0, histogram.greatest)
    if high / low < 1.1:  # a spike in the middle, not at an edge
        low, high = low / 1.05, high * 1.06
    if zoom:
        middle, share = max(1, histogram.quantile(0.5)), 2.0**-zoom
        low, high = middle * (low / middle) ** share, middle * (high / middle) ** share
    return low, high
