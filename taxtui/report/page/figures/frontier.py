"""Dollars against worker-hours with the frontier: the substrates of a workload, and a panel per workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from costmodel import DIFFERS, Interval, Place, Row, WorkLine, judge_rows
from taxtui.report.numbers import money, number
from taxtui.report.page.figure import Canvas, Figure, Panel, along_x, along_y, legend_height, legend_line
from taxtui.report.page.palette import INK, SURFACE, light
from taxtui.report.page.panels import NAME_COLUMNS
from taxtui.report.page.scales import amounts, limits, logarithmic_hours
from taxtui.terminal_text import clean, cut

MOST_PANELS: Final = 9
MOST_ROWS: Final = 24
"""Maximum substrates of a panel."""


ON: Final = "on it"
TIED: Final = "tie"
OFF: Final = "off it"
"""Relation to the frontier: no substrate is better in both hours and dollars, a substrate may be, or one surely is."""


class PlaceStanding(NamedTuple):
    """One substrate."""

    place: Place
    row: Row
    hours: Interval  # worker-hours
    usd: Interval | None  # None: no price
    frontier: str | None  # ``ON``, ``TIED`` or ``OFF``; None without a price


def standings(line: WorkLine, run_sd: float | None = None) -> list[PlaceStanding]:
    """Return the ranked entries of one workload, the fewest hours first."""
    results = []
    for entry in line.ranked:
        usd, rivals = usd_of(entry.row), [item.row for item in line.ranked if item is not entry]
        if entry.row.worker_hours is not None:
            frontier = None if usd is None else _frontier(entry.row, rivals, run_sd)
            results.append(PlaceStanding(entry.place, entry.row, entry.row.worker_hours, usd, frontier))
    return sorted(results, key=lambda item: item.hours.value)


def hours_of(row: Row) -> Interval | None:
    """Return the worker-hours."""
    return row.worker_hours


def usd_of(row: Row) -> Interval | None:
    """Return the total dollars; the interval of the workers' part follows from their hours."""
    cost, hours = row.cost, row.worker_hours
    if cost is None or hours is None:
        return None
    sandbox, worker = cost.sandbox_usd, cost.worker_usd or 0.0

    def limit(sandbox_usd: float | None, worker_hours: float | None) -> float | None:
        if sandbox_usd is None or worker_hours is None:
            return None
        return sandbox_usd + cost.idle_pool_usd + worker * (worker_hours / hours.value if hours.value else 1.0)

    return Interval(cost.total_usd, limit(sandbox.low, hours.low), limit(sandbox.high, hours.high))


def _frontier(row: Row, rivals: Sequence[Row], run_sd: float | None) -> str:
    pairs = [
        [judge_rows(rival, row, amount(rival), amount(row), run_sd) for amount in (hours_of, usd_of)]
        for rival in rivals
        if usd_of(rival) is not None
    ]
    better = [pair for pair in pairs if all(item.value.value < 0 for item in pair)]
    if any(all(item.verdict.kind == DIFFERS for item in pair) for pair in better):
        return OFF
    return TIED if better else ON


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
        notes.append(f"Not drawn, but in the table: {', '.join(cut(name, 40) for name in hidden)}.")
    drawn = list(priced.items())[:MOST_PANELS]
    panels = [_panel(f"frontier-{number}", name, group, colours) for number, (name, group) in enumerate(drawn, 1)]
    return Figure("frontier", "Dollars against hours", panels, notes)


def _panel(name: str, workload: str, standings: Sequence[PlaceStanding], colours: Mapping[str, str]) -> Panel:
    frontier_first = sorted(standings, key=lambda item: item.frontier == OFF)[:MOST_ROWS]
    drawn = sorted(frontier_first, key=lambda item: item.hours.value)
    names = [
        f"{cut(clean(item.place.name), NAME_COLUMNS)}: {number(item.hours.value)} h, {money(item.usd.value)}"
        for item in drawn
        if item.usd is not None
    ]
    foot = legend_height(len(drawn), 1)
    roles = [colours[item.row.label] for item in drawn]
    draw = partial(_draw, standings=drawn, names=names, roles=roles, foot=foot)
    return Panel(name, cut(clean(workload), 60), "; ".join(names), 220 + foot, draw)


def _draw(
    canvas: Canvas, standings: Sequence[PlaceStanding], names: Sequence[str], roles: Sequence[str], foot: int
) -> None:
    axes = canvas.axes(left_px=52, bottom_px=24 + foot, top_px=10)
    points = [(item, item.hours, item.usd) for item in standings if item.usd is not None]
    hours = [end for _, interval, _ in points for end in interval if end is not None]
    usd = [end for _, _, interval in points for end in interval if end is not None]
    low_hours, high_hours = limits(hours, log=True)
    axes.set_xscale("log")
    axes.set_xlim(low_hours, high_hours)
    axes.set_ylim(*limits(usd, log=False))
    along_x(axes, logarithmic_hours(low_hours, high_hours))
    along_y(axes, amounts(max(usd), "$"))
    frontier = sorted((x.value, y.value) for item, x, y in points if item.frontier == ON)
    axes.plot(*zip(*frontier, strict=True), color=light(INK), linewidth=0.8, linestyle=(0, (2, 2)))
    for (item, x, y), role in zip(points, roles, strict=True):
        colour = light(role)
        if x.low is not None and x.high is not None:
            axes.plot([x.low, x.high], [y.value, y.value], color=colour, linewidth=1)
        if y.low is not None and y.high is not None:
            axes.plot([x.value, x.value], [y.low, y.high], color=colour, linewidth=1)
        face = light(SURFACE) if item.frontier == OFF else colour
        axes.plot(x.value, y.value, marker="o", markersize=6, color=colour, markerfacecolor=face, linestyle="none")
    canvas.legend([(name, legend_line(role, "exec")) for name, role in zip(names, roles, strict=True)], 1)
