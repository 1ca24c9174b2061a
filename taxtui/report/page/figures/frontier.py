"""Dollars against worker-hours: a panel per workload, with the frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from taxtui.report.numbers import money, number
from taxtui.report.page.figure import Canvas, Figure, Panel, along_x, along_y, legend_height, legend_line
from taxtui.report.page.palette import INK, SURFACE, light
from taxtui.report.page.panels import MOST_ROWS, NAME_COLUMNS, file_name
from taxtui.report.page.scales import amounts, limits, logarithmic_hours
from taxtui.report.page.standings import OFF, ON, PlaceStanding
from taxtui.terminal_text import clean, cut

MOST_PANELS: Final = 9


def figure(workloads: Mapping[str, Sequence[PlaceStanding]], colours: Mapping[str, str]) -> Figure | None:
    """Return a figure of the workloads with two priced substrates or more; None without such a workload.

    ``colours``: label of a substrate → role of its colour.
    """
    priced = {name: [item for item in group if item.usd is not None] for name, group in workloads.items()}
    priced = {name: group for name, group in priced.items() if len(group) > 1}
    if not priced:
        return None
    notes = [
        "Dollars and worker-hours with 95 % intervals; the axis of hours is logarithmic. Dashed line: the frontier; no "
        "substrate is better in both. Hollow points: a substrate is surely better in both. The legend lists the points "
        "from left to right.",
    ]
    if hidden := list(priced)[MOST_PANELS:]:
        notes.append(f"Not drawn, but in the ranks: {', '.join(cut(name, 40) for name in hidden)}.")
    panels = [_panel(name, group, colours) for name, group in list(priced.items())[:MOST_PANELS]]
    more = sum(max(0, len(group) - MOST_ROWS) for group in list(priced.values())[:MOST_PANELS])
    notes += [f"{more:,} more substrates in the ranks."] if more else []
    return Figure("frontier", "Dollars against hours", panels, notes)


def _panel(workload: str, standings: Sequence[PlaceStanding], colours: Mapping[str, str]) -> Panel:
    frontier_first = sorted(standings, key=lambda item: item.frontier == OFF)[:MOST_ROWS]
    drawn = sorted(frontier_first, key=lambda item: item.hours.value)
    data = [_point(workload, item) for item in drawn]
    names = [
        f"{cut(clean(point['substrate']), NAME_COLUMNS)}: {number(point['worker_hours'])} h, {money(point['usd'])}"
        for point in data
    ]
    roles = [colours[item.row.label] for item in drawn]
    foot = legend_height(len(data), 1)
    title = cut(clean(workload), 60)
    draw = partial(_draw, data=data, names=names, roles=roles, foot=foot)
    return Panel(f"frontier-{file_name(title)}", title, "; ".join(names), 220 + foot, draw, data)


def _point(workload: str, standing: PlaceStanding) -> dict[str, Any]:
    assert standing.usd is not None
    return {
        "workload": workload,
        "substrate": standing.place.name,
        "provenance": standing.place.provenance,
        "n": standing.row.trials,
        "worker_hours": standing.hours.value,
        "worker_hours_low": standing.hours.low,
        "worker_hours_high": standing.hours.high,
        "usd": standing.usd.value,
        "usd_low": standing.usd.low,
        "usd_high": standing.usd.high,
        "frontier": standing.frontier,
        "flags": list(standing.row.flags),
    }


def _draw(
    canvas: Canvas, data: Sequence[dict[str, Any]], names: Sequence[str], roles: Sequence[str], foot: int
) -> None:
    axes = canvas.axes(left_px=52, bottom_px=24 + foot, top_px=10)
    hours, usd = (
        [point[end] for point in data for end in (name, f"{name}_low", f"{name}_high") if point[end] is not None]
        for name in ("worker_hours", "usd")
    )
    low_hours, high_hours = limits(hours, log=True)
    axes.set_xscale("log")
    axes.set_xlim(low_hours, high_hours)
    axes.set_ylim(*limits(usd, log=False))
    along_x(axes, logarithmic_hours(low_hours, high_hours))
    along_y(axes, amounts(max(usd), "$"))
    frontier = sorted((point["worker_hours"], point["usd"]) for point in data if point["frontier"] == ON)
    axes.plot(*zip(*frontier, strict=True), color=light(INK), linewidth=0.8, linestyle=(0, (2, 2)))
    for point, role in zip(data, roles, strict=True):
        colour, x, y = light(role), point["worker_hours"], point["usd"]
        if point["worker_hours_low"] is not None and point["worker_hours_high"] is not None:
            axes.plot([point["worker_hours_low"], point["worker_hours_high"]], [y, y], color=colour, linewidth=1)
        if point["usd_low"] is not None and point["usd_high"] is not None:
            axes.plot([x, x], [point["usd_low"], point["usd_high"]], color=colour, linewidth=1)
        face = light(SURFACE) if point["frontier"] == OFF else colour
        axes.plot(x, y, marker="o", markersize=6, color=colour, markerfacecolor=face, linestyle="none")
    canvas.legend([(name, legend_line(role, "exec")) for name, role in zip(names, roles, strict=True)], 1)
