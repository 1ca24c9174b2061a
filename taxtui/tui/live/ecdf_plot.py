"""All substrates of one workload on one chart: what share of the values is at most so long, a line for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import RenderResult
from textual.color import Color
from textual_plotext import PlotextPlot

from taxtui.live.histogram import LogHistogram, lower
from taxtui.terminal_text import clean
from taxtui.tui import units
from taxtui.tui.colours import colour, glyph, substrate_style

TICK_SPACING: Final = 9  # columns
SHARES: Final = (0.0, 0.5, 0.95, 1.0)
EDGE: Final = 1.02  # beyond the least and the greatest


class EcdfLine(NamedTuple):
    """One line: a substrate, and the histogram of its durations in ns."""

    label: str
    histogram: LogHistogram


class EcdfPlot(PlotextPlot):
    """Empirical distribution functions on a logarithmic axis of time; a steep line to the left is best."""

    def __init__(self, *, id: str | None = None) -> None:
        """Begin empty."""
        super().__init__(id=id)
        self.lines: Sequence[EcdfLine] = ()
        self._drawn: object = None

    def show(self, title: str, lines: Sequence[EcdfLine]) -> None:
        """Draw these, if anything about them is new; those without a value are named all the same."""
        drawn = title, [(line.label, line.histogram.n, line.histogram.total) for line in lines]
        if drawn != self._drawn:
            self.lines, self._drawn = lines, drawn
            self.border_title = Text(title)  # which draws the rest anew too

    def render(self) -> RenderResult:
        """A legend with the numbers of values, then the lines."""
        width, height = self.size
        known = [line.histogram for line in self.lines if line.histogram.n]
        if not known or height < 5 or width < 3 * TICK_SPACING:
            return Text("\n").join([self._legend(), Text("no value of it yet", Style(dim=True))])
        low = max(1.0, min(one.least for one in known)) / EDGE
        high = max(2.0, max(one.greatest for one in known)) * EDGE
        self.plt.clear_figure()
        self.plt.plotsize(width, height - 1)
        self.plt.theme("clear")
        self.plt.xaxes(True, False)
        self.plt.yaxes(True, False)
        self.plt.xlim(math.log10(low), math.log10(high))
        self.plt.ylim(0, 1)
        ticks = list(units.ticks(low, high, width, TICK_SPACING))
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
    """Where the line goes: durations in ns, and the share of values that are at most so long; from 0 to 1."""
    indices = sorted(histogram.counts)
    reached = accumulate(histogram.counts[index] for index in indices)
    least = max(1.0, float(histogram.least))
    across, up = [least], [0.0]
    for index, count in zip(indices, reached, strict=True):
        across.append(max(least, float(min(lower(index + 1) - 1, histogram.greatest))))
        up.append(count / histogram.n)
    return across, up
