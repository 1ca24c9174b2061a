"""Completion over the number of actions."""

from __future__ import annotations

from typing import Any, Final

from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.numbers import duration
from taxtui.report.page.figure import Canvas, Figure, Panel, along_x, along_y, legend_height, legend_line
from taxtui.report.page.material import Material
from taxtui.report.page.palette import light, style
from taxtui.report.page.panels import PanelRows, identified, kind_of
from taxtui.report.page.scales import NS, Tick, durations, limits

COMPLETION: Final = "trajectory"


def figures(material: Material) -> list[Figure]:
    """Return one figure: a panel for each group of rows with several lengths."""
    panels = [
        _panel(material, group) for group in material.panels if len({row.length for row in _completed(group)}) > 1
    ]
    notes = material.notes(
        "Median completion with its 95 % interval; solid: exec, dashed: session. Both axes are logarithmic. A longer "
        "trajectory spreads its start over more actions.",
    )
    return [Figure("length", "Completion by length", panels, notes)]


def _completed(group: PanelRows) -> list[MeasuredRow]:
    return [row for row in group.rows if row.length.mean and row.summary(COMPLETION)]


def _panel(material: Material, group: PanelRows) -> Panel:
    rows = _completed(group)
    data = [_point(row) for row in rows]
    kinds = material.kinds(rows)
    foot = legend_height(len(kinds), 1)

    def draw(canvas: Canvas) -> None:
        axes = canvas.axes(left_px=48, bottom_px=24 + foot, top_px=10)
        lengths = sorted({point["mean_actions"] for point in data})
        times = [ns * NS for point in data for ns in (point["low_ns"], point["p50_ns"], point["high_ns"]) if ns]
        low, high = limits(times, log=True)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(*limits(lengths, log=True))
        axes.set_ylim(low, high)
        along_x(axes, [Tick(length, f"{length:g} actions") for length in lengths])
        along_y(axes, durations(low, high, log=True))
        for label, mode in kinds:
            colour = light(material.colours[label])
            points = [
                point
                for row, point in zip(rows, data, strict=True)
                if (row.own_label, row.identity.mode) == (label, mode)
            ]
            x, y = [point["mean_actions"] for point in points], [point["p50_ns"] * NS for point in points]
            axes.plot(x, y, color=colour, linestyle=style(mode), linewidth=1.2)
            for length, point in zip(x, points, strict=True):
                if point["low_ns"] is not None and point["high_ns"] is not None:
                    axes.plot([length] * 2, [point["low_ns"] * NS, point["high_ns"] * NS], color=colour, linewidth=1)
        canvas.legend([(name, legend_line(material.colours[label], mode)) for (label, mode), name in kinds.items()], 1)

    about = "Median completion: " + "; ".join(
        f"{kind_of(row)} at {row.length} actions: {duration(point['p50_ns'])}"
        for row, point in zip(rows, data, strict=True)
    )
    return Panel(f"length-{group.name}", group.title, about, 220 + foot, draw, data, group.provenance)


def _point(row: MeasuredRow) -> dict[str, Any]:
    summary = row.summary(COMPLETION)
    assert summary is not None
    median = summary.p50
    interval = {"p50_ns": median.value, "low_ns": median.low, "high_ns": median.high}
    return {**identified(row), "mean_actions": float(row.length.mean), **interval}
