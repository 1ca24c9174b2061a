"""Dollars against hours: a panel per work, with what nothing else beats in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from taxtui.report.numbers import number, usd
from taxtui.report.page.palette import INK, SURFACE, Look, light
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import amounts, limits
from taxtui.report.page.settings import MOST_ROWS, NAME_COLUMNS, file_name
from taxtui.report.page.sheet import FONT, Sheet, along_x, along_y, key, legend_height, legible
from taxtui.report.page.standings import OFF, PlaceStanding
from taxtui.terminal_text import clean, cut

MOST_PANELS: Final = 9


def figure(works: Mapping[str, Sequence[PlaceStanding]], looks: Mapping[str, Look]) -> Figure | None:
    """Draw the workloads for which two substrates or more have a price; None without such a workload."""
    priced = {name: [item for item in group if item.usd is not None] for name, group in works.items()}
    shown = {name: _nearest(group) for name, group in priced.items() if len(group) > 1}
    if not shown:
        return None
    panels = [_panel(name, group, looks) for name, group in list(shown.items())[:MOST_PANELS]]
    notes = [
        "Each place with the 95 % intervals of both. Line: from one to the next of those that nothing beats in hours "
        "and in dollars; hollow: something surely does. Both axes are logarithmic.",
    ]
    if len(shown) > MOST_PANELS:
        notes.append(f"Not drawn, but in the ranks: {', '.join(cut(name, 40) for name in list(shown)[MOST_PANELS:])}.")
    cut_short = sum(max(0, len(priced[name]) - MOST_ROWS) for name in list(shown)[:MOST_PANELS])
    notes += [f"{cut_short:,} more places in the ranks, off the line or the farthest from it."] if cut_short else []
    return Figure("pareto", "Dollars against hours", panels, notes)


def _nearest(own: Sequence[PlaceStanding]) -> list[PlaceStanding]:
    """Return the substrates that fit a panel: first those on the frontier, then by hours; in their order."""
    least = sorted(range(len(own)), key=lambda place: own[place].frontier == OFF)[:MOST_ROWS]
    return [own[place] for place in sorted(least)]


def _panel(name: str, own: Sequence[PlaceStanding], looks: Mapping[str, Look]) -> Panel:
    data = [_record(name, item) for item in own]
    texts = [
        f"{cut(clean(item.place.name), NAME_COLUMNS)}: {number(item.hours.value)} h, ${usd(item.usd.value)}"
        for item in own
        if item.usd is not None
    ]
    foot = legend_height(len(own), 1)
    draw = partial(_draw, data=data, names=texts, looks=[looks[item.row.label] for item in own])
    title = cut(clean(name), 60)
    return Panel(f"pareto-{file_name(title)}", title, "; ".join(texts), 220 + foot, draw, data)


def _record(work: str, one: PlaceStanding) -> dict[str, Any]:
    dollars = one.usd or (None, None, None)
    return {
        "work": work,
        "place": one.place.name,
        "provenance": one.place.provenance,
        "n": one.row.trials,
        "worker_hours": one.hours.value,
        "worker_hours_low": one.hours.low,
        "worker_hours_high": one.hours.high,
        "usd": dollars[0],
        "usd_low": dollars[1],
        "usd_high": dollars[2],
        "frontier": one.frontier,
        "flags": list(one.row.flags),
    }


def _draw(sheet: Sheet, data: Sequence[dict[str, Any]], names: Sequence[str], looks: Sequence[Look]) -> None:
    axes = sheet.axes(left=48, bottom=38 + legend_height(len(data), 1), top=20)
    ends = {
        axis: [item[end] for item in data for end in (axis, f"{axis}_low", f"{axis}_high") if item[end]]
        for axis in ("worker_hours", "usd")
    }
    axes.set_xscale("log")
    axes.set_yscale("log")
    (left, right), (bottom, top) = (limits(ends[axis] or [1.0], log=True) for axis in ("worker_hours", "usd"))
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    along_x(axes, amounts(left, right, log=True), "worker-hours")
    along_y(axes, amounts(bottom, top, log=True, unit="$"), "dollars")
    best = sorted((item["worker_hours"], item["usd"]) for item in data if item["frontier"] != OFF)
    axes.plot([x for x, _ in best], [y for _, y in best], color=light(INK), linewidth=0.8, linestyle=(0, (2, 2)))
    marks = []
    for item, name, look in zip(data, names, looks, strict=True):
        colour, x, y = light(look.role), item["worker_hours"], item["usd"]
        if item["worker_hours_low"] and item["worker_hours_high"]:
            axes.plot([item["worker_hours_low"], item["worker_hours_high"]], [y, y], color=colour, linewidth=1)
        if item["usd_low"] and item["usd_high"]:
            axes.plot([x, x], [item["usd_low"], item["usd_high"]], color=colour, linewidth=1)
        face = light(SURFACE) if item["frontier"] == OFF else colour
        axes.plot(x, y, marker=look.marker, markersize=6, color=colour, markerfacecolor=face, linestyle="none")
        label = legible(cut(item["place"], 16))
        ends_right = x * x > left * right  # in the right half: towards the middle, where there is room
        axes.annotate(
            label,
            (x, y),
            xytext=(-6 if ends_right else 6, 5),
            textcoords="offset points",
            ha="right" if ends_right else "left",
            color=light(INK),
            size=FONT - 1,
        )
        marks.append((name, key(look, "")))
    sheet.legend(marks, 1)
