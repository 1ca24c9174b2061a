"""Distribution of cold starts, a curve per row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from costmodel import quantile
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.measured.samples import column
from taxtui.report.page.figure import Canvas, Figure, along_x, along_y, legend_height, legend_line
from taxtui.report.page.palette import light, style
from taxtui.report.page.panels import PanelRows, curves, panels_of
from taxtui.report.page.scales import NS, Tick, durations, limits

NAME: Final = "cold_start"
MOST_POINTS: Final = 128
"""Points of a curve; a longer sample is drawn at this number of quantiles."""


def figure(all_rows: Sequence[MeasuredRow], colours: dict[str, str]) -> Figure:
    """Return the curves; ``colours``: label of a substrate → role of its colour."""
    groups, notes = panels_of([row for row in all_rows if _has_cold_start(row)])
    panels = curves("cold-start", groups, NAME, 210, partial(_draw, colours=colours))
    text = (
        "Share of trials with at most this cold start, a curve per row; solid: exec, dashed: session. Pale bars: 95 % "
        "intervals of p50 and p95, if there are enough trials. The axis is logarithmic."
    )
    return Figure("cold-start", "Cold start", panels, [text, *notes])


def _has_cold_start(row: MeasuredRow) -> bool:
    return row.summary(NAME) is not None and min(column(row.good, NAME).values) > 0


def _draw(canvas: Canvas, group: PanelRows, colours: dict[str, str]) -> None:
    curves = {row: _points(row) for row in group.rows}
    axes = canvas.axes(left_px=34, bottom_px=24 + legend_height(len(group.kinds), 1), top_px=10)
    low, high = limits([ns * NS for curve in curves.values() for ns in (curve[0], curve[-1])], log=True)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    along_x(axes, durations(low, high, log=True))
    axes.set_ylim(0, 1.02)
    along_y(axes, [Tick(share, f"{100 * share:.0f} %") for share in (0, 0.25, 0.5, 0.75, 0.95)])
    for row, curve in curves.items():
        colour, line = light(colours[row.own_label]), style(row.identity.mode)
        shares = [(number + 1) / len(curve) for number in range(len(curve))]
        seconds = [ns * NS for ns in curve]
        x, y = [seconds[0], *seconds], [0, *shares]
        axes.step(x, y, where="post", color=colour, linewidth=1, alpha=0.85, linestyle=line)
        summary = row.summary(NAME)
        assert summary is not None
        for share, item in ((0.5, summary.p50), (0.95, summary.p95)):
            if item.low is not None and item.high is not None:
                x = [item.low * NS, item.high * NS]
                axes.plot(x, [share, share], color=colour, linewidth=4, alpha=0.22, solid_capstyle="butt")
    canvas.legend([(name, legend_line(colours[label], mode)) for (label, mode), name in group.kinds.items()], 1)


def _points(row: MeasuredRow) -> list[int]:
    ascending = sorted(column(row.good, NAME).values)
    if len(ascending) <= MOST_POINTS:
        return ascending
    return [quantile(ascending, (number + 1) / MOST_POINTS) for number in range(MOST_POINTS)]
