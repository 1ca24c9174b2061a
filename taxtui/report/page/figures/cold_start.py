"""Cold start: its median by substrate and tier, and its distribution as a curve and as a box."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from matplotlib.axes import Axes

from costmodel.statistics.intervals import quantile
from taxtui.report.measured.rows import Row
from taxtui.report.measured.samples import column
from taxtui.report.numbers import duration
from taxtui.report.page.lines import MarkLine, lines_axes, lines_height
from taxtui.report.page.material import Material
from taxtui.report.page.palette import INK, SURFACE, Look, light, style
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS, Tick, durations, limits
from taxtui.report.page.settings import NAME_COLUMNS, Setting, identified, name_in
from taxtui.report.page.sheet import Sheet, along_x, along_y, key, legend_height
from taxtui.terminal_text import clean, cut

NAME: Final = "cold_start"
MOST_POINTS: Final = 128
"""Of a curve: a longer sample is drawn at so many of its quantiles."""
_BOX: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


def figures(material: Material) -> list[Figure]:
    """Medians, curves, boxes."""
    return [_medians(material), _curves(material), _boxes(material)]


def told(row: Row) -> bool:
    """Whether it has a cold start at all."""
    return row.summary(NAME) is not None and min(column(row.good, NAME).values) > 0


def _medians(material: Material) -> Figure:
    panels = []
    for apart, group in groupby(material.settings, lambda one: one.apart):
        lines = [
            (setting, label, [row for row in setting.rows if row.own_label == label and told(row)])
            for setting in group
            for label in sorted({row.own_label for row in setting.rows})
        ]
        lines = [line for line in lines if line[2]]
        if lines:
            panels.append(_median_panel(material, lines, apart))
    notes = material.notes(
        "One mark per row of the table: its median and the 95 % interval of that, with how much runs differ. Filled: "
        "exec, hollow: session. On the right the lowest and the highest median. The axis is logarithmic.",
    )
    return Figure("cold-start", "Cold start by substrate and tier", panels, notes)


def _median_panel(material: Material, lines: Sequence[tuple[Setting, str, list[Row]]], apart: str) -> Panel:
    data = [{**identified(row), **_p50(row)} for _, _, rows in lines for row in rows]
    written = [
        MarkLine(
            f"{setting.title} {cut(clean(rows[0].identity.label), NAME_COLUMNS)}{material.lettered(rows)}", _range(rows)
        )
        for setting, _, rows in lines
    ]
    about = "; ".join(f"{line.name}: {line.told}" for line in written)

    def draw(sheet: Sheet) -> None:
        axes = lines_axes(sheet, written, foot=0)
        ends = [end for one in data for end in (one["low_ns"], one["p50_ns"], one["high_ns"]) if end]
        _log_x(axes, ends)
        for number, (_, _, rows) in enumerate(lines):
            for place, row in enumerate(rows):
                y = number + 0.02 + 0.36 * (place + 0.5) / len(rows)
                _dot(axes, row, _p50(row), y, material.look(row))

    title = f"{apart}, cold start" if apart else "Cold start"
    name = f"cold-start{f'-{apart.lower()}' if apart else ''}"
    return Panel(name, title, about, lines_height(len(lines), 0), draw, data, apart)


def _dot(axes: Axes, row: Row, one: dict[str, Any], y: float, look: Look) -> None:
    colour = light(look.role)
    if one["low_ns"] is not None and one["high_ns"] is not None:
        axes.plot([one["low_ns"] * NS, one["high_ns"] * NS], [y, y], color=colour, linewidth=1)
    hollow = row.identity.mode == "session"
    axes.plot(
        one["p50_ns"] * NS,
        y,
        marker=look.marker,
        markersize=4,
        color=colour,
        markerfacecolor=light(SURFACE) if hollow else colour,
        markeredgewidth=1,
        linestyle="none",
    )


def _p50(row: Row) -> dict[str, Any]:
    summary = row.summary(NAME)
    assert summary is not None
    return {"p50_ns": summary.p50.value, "low_ns": summary.p50.low, "high_ns": summary.p50.high}


def _range(rows: Sequence[Row]) -> str:
    medians = sorted(_p50(row)["p50_ns"] for row in rows)
    ends = dict.fromkeys(duration(ns) for ns in (medians[0], medians[-1]))
    return f"{' – '.join(ends)}, n={sum(len(row.good) for row in rows):,}"


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
    return Figure("cold-start-curves", "Cold start: distribution", panels, notes)


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
            for share, one in ((0.5, summary.p50), (0.95, summary.p95)):
                if one.low is not None and one.high is not None:
                    ends = [one.low * NS, one.high * NS]
                    axes.plot(ends, [share, share], color=colour, linewidth=4, alpha=0.22, solid_capstyle="butt")
        sheet.legend(
            [(name, key(material.looks[label], mode, marked=False)) for (label, mode), name in kinds.items()], 1
        )

    data = [{**identified(row), "cold_start_ns": curve} for row, curve in curves.items()]
    about = (
        f"Cold starts of {len(rows)} rows, {sum(len(row.good) for row in rows):,} trials; the boxes tell the quartiles."
    )
    return Panel(f"cold-start-curves-{setting.name}", setting.title, about, 210 + foot, draw, data, setting.apart)


def _points(row: Row) -> list[int]:
    ascending = sorted(column(row.good, NAME).values)
    if len(ascending) <= MOST_POINTS:
        return ascending
    return [quantile(ascending, (place + 1) / MOST_POINTS) for place in range(MOST_POINTS)]


def _boxes(material: Material) -> Figure:
    panels = [_box_panel(material, setting) for setting in material.settings if any(map(told, setting.rows))]
    notes = material.notes(
        "Box: the middle half of the trials, with the median. Whiskers: 5 to 95 %. Dots: the least and the greatest, "
        "nothing is removed. Line below: the median's 95 % interval.",
    )
    return Figure("cold-start-boxes", "Cold start: quartiles and ends", panels, notes)


def _box_panel(material: Material, setting: Setting) -> Panel:
    rows = [row for row in setting.rows if told(row)]
    data = [{**identified(row), **_five(row), **_p50(row)} for row in rows]
    written = [
        MarkLine(f"{name_in(row, rows, material.letters(row))}", f"{duration(one['p50_ns'])}, n={one['n']:,}")
        for row, one in zip(rows, data, strict=True)
    ]
    about = "Medians: " + "; ".join(f"{line.name}: {line.told}" for line in written)
    draw = partial(_draw_boxes, written=written, data=data, roles=[material.look(row).role for row in rows])
    name = f"cold-start-boxes-{setting.name}"
    return Panel(name, setting.title, about, lines_height(len(rows), 0), draw, data, setting.apart)


def _draw_boxes(
    sheet: Sheet, written: Sequence[MarkLine], data: Sequence[dict[str, Any]], roles: Sequence[str]
) -> None:
    axes = lines_axes(sheet, written, foot=0)
    _log_x(axes, [one[end] for one in data for end in ("least_ns", "greatest_ns")])
    for y, (one, role) in enumerate(zip(data, roles, strict=True)):
        colour = light(role)
        at = y + 0.1
        axes.plot([one["p5_ns"] * NS, one["p95_ns"] * NS], [at, at], color=colour, linewidth=1)
        start, end = one["p25_ns"] * NS, one["p75_ns"] * NS
        axes.barh(at, end - start, left=start, height=0.28, color=light(SURFACE), edgecolor=colour, linewidth=1)
        axes.plot([one["p50_ns"] * NS] * 2, [at - 0.14, at + 0.14], color=colour, linewidth=2.2)
        axes.plot(
            [one["least_ns"] * NS, one["greatest_ns"] * NS], [at, at], "o", color=colour, markersize=2, linestyle="none"
        )
        if one["low_ns"] is not None and one["high_ns"] is not None:
            axes.plot([one["low_ns"] * NS, one["high_ns"] * NS], [at + 0.2, at + 0.2], color=light(INK), linewidth=1.2)


def _five(row: Row) -> dict[str, int]:
    ascending = sorted(column(row.good, NAME).values)
    found = {f"p{100 * share:.0f}_ns": quantile(ascending, share) for share in _BOX}
    return {"least_ns": ascending[0], **found, "greatest_ns": ascending[-1]}
