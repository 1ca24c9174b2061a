"""The charts of the Live screen: a histogram, the distribution functions of all substrates, and phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from taxtui.live.cell_state import CellState, TrialInFlight
from taxtui.live.histogram import LogHistogram, lower
from taxtui.live.state import RunState
from taxtui.report.bars import Bar
from taxtui.report.numbers import CLOSED_LOOP, percent, short_duration
from taxtui.terminal_text import clean
from taxtui.tui.chart import Chart, ChartCurve
from taxtui.tui.colours import colour, glyph
from taxtui.tui.live.panels import workload
from taxtui.tui.stacked_bars import StackedBars
from taxtui.tui.units import NEEDED, QUANTILES

MOST_BARS: Final = 40
LEAST_BARS: Final = 12


def bars_of(histogram: LogHistogram) -> list[tuple[float, float]]:
    """Return the middles of columns of equal width on a logarithmic axis, in ns, and their counts."""
    if not histogram.n:
        return []
    number = min(MOST_BARS, max(LEAST_BARS, round(8 * math.sqrt(histogram.n))))  # few values need wide bars
    low, high = max(1.0, histogram.least), max(1.0, histogram.greatest)
    if high / low < 1.1:  # a single value is in the middle
        low, high = low / 1.05, high * 1.06
    step = (high / low) ** (1 / number)
    counts = histogram.columns(number, low, high)
    return [(low * step ** (place + 0.5), count) for place, count in enumerate(counts)]


def steps(histogram: LogHistogram) -> list[tuple[float, float]]:
    """Return the points of a distribution function: durations in ns, and the share of values up to each duration."""
    if not histogram.n:
        return []
    indices = sorted(histogram.counts)
    reached = accumulate(histogram.counts[index] for index in indices)
    shortest = max(1.0, float(histogram.least))
    ends = [max(shortest, float(min(lower(index + 1) - 1, histogram.greatest))) for index in indices]
    return [(shortest, 0.0), *((end, count / histogram.n) for end, count in zip(ends, reached, strict=True))]


def paint_charts(
    chart: Chart, overlay: Chart, state: RunState, chosen: CellState | None, facet: str, *, dark: bool
) -> None:
    """Show a duration of the chosen cell, and of all substrates with the same workload."""
    title, empty = facet.replace("_", " "), waiting(state, chosen, facet)
    if chosen is None:
        chart.present(title, [], empty=empty)
        overlay.present(title, [], empty=empty)
        return
    cells = list(state.cells.values())
    alike = [cell for cell in cells if same_workload(cell, chosen)]
    name, histogram = workload(chosen, cells), chosen.facets[facet]
    if chart.display:
        known = [key for key in QUANTILES if histogram.n >= NEEDED[key]]
        marks = [histogram.quantile(QUANTILES[key]) for key in known]
        legend = f"n={histogram.n:,}" + (f" · │ {' '.join(known)}" if known else "")
        bars = ChartCurve(legend, colour(chosen.label, dark=dark), bars_of(histogram), "{:,.0f}".format, bars=True)
        hint = f" · v: all {len(alike)}" if len(alike) > 1 and not overlay.display else ""
        chart.present(f"{title} · {chosen.label} {name}{hint}", [bars], marks, empty=empty)
    if not overlay.display:
        return
    curves = [
        ChartCurve(
            f"{glyph(cell.label)} {clean(cell.label)} n={cell.facets[facet].n:,}",
            colour(cell.label, dark=dark),
            steps(cell.facets[facet]),
            percent,
        )
        for cell in alike
    ]
    overlay.present(f"{title} · {name} · share up to a duration", curves, empty=empty)


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
