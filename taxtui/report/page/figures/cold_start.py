"""The distribution of cold starts, as a curve per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes

from costmodel import quantile
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.measured.samples import column
from taxtui.report.numbers import duration
from taxtui.report.page.material import Material
from taxtui.report.page.palette import light, style
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS, Tick, durations, limits
from taxtui.report.page.settings import Setting, identified, kind_of
from taxtui.report.page.sheet import Sheet, along_x, along_y, key, legend_height

NAME: Final = "cold_start"
MOST_POINTS: Final = 128
"""Points of a curve: a longer sample is drawn at this number of quantiles."""


def figures(material: Material) -> list[Figure]:
    """The distribution, a panel per setting."""
    return [_curves(material)]


def told(row: MeasuredRow) -> bool:
    """Whether it has a cold start at all."""
    return row.summary(NAME) is not None and min(column(row.good, NAME).values) > 0


def _log_x(axes: Axes, values_ns: Sequence[float], label: str = "") -> None:
    low, high = limits([ns * NS for ns in values_ns], log=True)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    along_x(axes, durations(low, high, log=True), label)


def _curves(material: Material) -> Figure:
    panels = [_curve_panel(material, setting) for setting in material.settings if any(map(told, setting.rows))]
    notes = material.notes(
        "The share of trials whose cold start took at most so long, a curve per row; solid: exec, dashed: session. "
        "Pale bars: the 95 % intervals of p50 and p95, where there are trials enough. The axis is logarithmic.",
    )
    return Figure("cold-start", "Cold start", panels, notes)


def _curve_panel(material: Material, setting: Setting) -> Panel:
    rows = [row for row in setting.rows if told(row)]
    curves = {row: _points(row) for row in rows}
    kinds = material.kinds(rows)
    foot = legend_height(len(kinds), 1)

    def draw(sheet: Sheet) -> None:
        axes = sheet.axes(left=34, bottom=24 + foot, top=10)
        _log_x(axes, [ns for curve in curves.values() for ns in (curve[0], curve[-1])])
        axes.set_ylim(0, 1.02)
        along_y(axes, [Tick(at, f"{at:.0%}"[:-1] + " %") for at in (0, 0.25, 0.5, 0.75, 0.95)])
        for row, curve in curves.items():
            colour = light(material.look(row).role)
            shares = [(place + 1) / len(curve) for place in range(len(curve))]
            seconds = [ns * NS for ns in curve]
            axes.step(
                [seconds[0], *seconds],
                [0, *shares],
                where="post",
                color=colour,
                linewidth=1,
                alpha=0.85,
                linestyle=style(row.identity.mode),
            )
            summary = row.summary(NAME)
            assert summary is not None
            for share, item in ((0.5, summary.p50), (0.95, summary.p95)):
                if item.low is not None and item.high is not None:
                    ends = [item.low * NS, item.high * NS]
                    axes.plot(ends, [share, share], color=colour, linewidth=4, alpha=0.22, solid_capstyle="butt")
        sheet.legend(
            [(name, key(material.looks[label], mode, marked=False)) for (label, mode), name in kinds.items()], 1
        )

    data = [{**identified(row), "cold_start_ns": curve} for row, curve in curves.items()]
    medians = (
        f"{kind_of(row)} {row.length}: {duration(summary.p50.value or 0)}"
        for row in rows
        if (summary := row.summary(NAME))
    )
    about = f"Cold starts of {sum(len(row.good) for row in rows):,} trials; medians: {'; '.join(medians)}."
    return Panel(f"cold-start-{setting.name}", setting.title, about, 210 + foot, draw, data, setting.apart)


def _points(row: MeasuredRow) -> list[int]:
    ascending = sorted(column(row.good, NAME).values)
    if len(ascending) <= MOST_POINTS:
        return ascending
    return [quantile(ascending, (place + 1) / MOST_POINTS) for place in range(MOST_POINTS)]
