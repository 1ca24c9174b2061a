"""Distribution of cold starts, a curve per row."""

from __future__ import annotations

from typing import Final

from costmodel import quantile
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.measured.samples import column
from taxtui.report.numbers import duration
from taxtui.report.page.figure import Canvas, Figure, Panel, along_x, along_y, legend_height, legend_line
from taxtui.report.page.material import Material
from taxtui.report.page.palette import light, style
from taxtui.report.page.panels import PanelRows, identified, kind_of
from taxtui.report.page.scales import NS, Tick, durations, limits

NAME: Final = "cold_start"
MOST_POINTS: Final = 128
"""Points of a curve; a longer sample is drawn at this number of quantiles."""


def figures(material: Material) -> list[Figure]:
    """Return one figure."""
    panels = [_panel(material, group) for group in material.panels if any(map(_has_cold_start, group.rows))]
    notes = material.notes(
        "Share of trials with at most this cold start, a curve per row; solid: exec, dashed: session. Pale bars: 95 % "
        "intervals of p50 and p95, if there are enough trials. The axis is logarithmic.",
    )
    return [Figure("cold-start", "Cold start", panels, notes)]


def _has_cold_start(row: MeasuredRow) -> bool:
    return row.summary(NAME) is not None and min(column(row.good, NAME).values) > 0


def _panel(material: Material, group: PanelRows) -> Panel:
    rows = [row for row in group.rows if _has_cold_start(row)]
    curves = {row: _points(row) for row in rows}
    kinds = material.kinds(rows)
    foot = legend_height(len(kinds), 1)

    def draw(canvas: Canvas) -> None:
        axes = canvas.axes(left_px=34, bottom_px=24 + foot, top_px=10)
        low, high = limits([ns * NS for curve in curves.values() for ns in (curve[0], curve[-1])], log=True)
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        along_x(axes, durations(low, high, log=True))
        axes.set_ylim(0, 1.02)
        along_y(axes, [Tick(share, f"{100 * share:.0f} %") for share in (0, 0.25, 0.5, 0.75, 0.95)])
        for row, curve in curves.items():
            colour, line = light(material.colours[row.own_label]), style(row.identity.mode)
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
        canvas.legend([(name, legend_line(material.colours[label], mode)) for (label, mode), name in kinds.items()], 1)

    data = [{**identified(row), "cold_start_ns": curve} for row, curve in curves.items()]
    medians = (
        f"{kind_of(row)} {row.length}: {duration(summary.p50.value or 0)}"
        for row in rows
        if (summary := row.summary(NAME))
    )
    about = f"Cold starts of {sum(len(row.good) for row in rows):,} trials; medians: {'; '.join(medians)}."
    return Panel(f"cold-start-{group.name}", group.title, about, 210 + foot, draw, data, group.provenance)


def _points(row: MeasuredRow) -> list[int]:
    ascending = sorted(column(row.good, NAME).values)
    if len(ascending) <= MOST_POINTS:
        return ascending
    return [quantile(ascending, (number + 1) / MOST_POINTS) for number in range(MOST_POINTS)]
