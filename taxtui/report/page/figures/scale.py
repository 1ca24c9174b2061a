"""Worker-hours over the number of trajectories, from ten thousand to a million."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from costmodel import Published
from taxtui.report.measured.rows import Row
from taxtui.report.numbers import hours, span
from taxtui.report.page.lines import MarkLine, lines_axes, lines_height
from taxtui.report.page.material import MILLION, Material
from taxtui.report.page.palette import MUTED, light, style
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import amounts, limits
from taxtui.report.page.settings import NAME_COLUMNS, Setting, file_name, identified, name_in
from taxtui.report.page.sheet import Sheet, along_x, along_y, key, legend_height
from taxtui.terminal_text import clean, cut

FIRST: Final = 10_000


def figures(material: Material) -> list[Figure]:
    """One panel per setting, at its greatest length."""
    panels = [panel for setting in material.settings if (panel := _panel(material, setting)) is not None]
    panels += [_printed(material, published) for published in material.published]
    notes = material.notes(
        "What N delivered trajectories hold workers for, failures included: N × held per success; the band is its 95 % "
        "interval. Beside each name the hours of a million. Both axes are logarithmic; solid: exec, dashed: session. "
        "Flags that scale adds (few runs, a concurrency that was not measured) are in taxtui project.",
    )
    return [Figure("worker-hours", "Worker-hours at the scale of training", panels, notes)]


def _panel(material: Material, setting: Setting) -> Panel | None:
    known = [row for row in setting.rows if material.projected(row)]
    longest = max((row.length.mean for row in known), default=None)
    rows = [row for row in known if row.length.mean == longest]
    if not rows:
        return None
    data = [{**identified(row), **_hours(material, row)} for row in rows]
    names = [
        f"{name_in(row, rows, material.letters(row))}: {hours(one['worker_hours'])} h"
        + (f" ({limits})" if (limits := span(material.projected(row).worker_hours)) else "")  # type: ignore[union-attr]
        for row, one in zip(rows, data, strict=True)
    ]
    foot = legend_height(len(rows), 1)
    about = f"Worker-hours of a million trajectories of {rows[0].length} actions: {'; '.join(names)}"
    draw = partial(_draw, material=material, rows=rows, data=data, names=names)
    title = f"{setting.title}, {rows[0].length} actions"
    return Panel(f"worker-hours-{setting.name}", title, about, 210 + foot, draw, data, setting.apart)


def _printed(material: Material, published: Published) -> Panel:
    """What somebody published, by the same formula: points, as nothing is known of how sure they are."""
    rows = [row for row in material.per_million if row.sources == (published.name,) and row.worker_hours]
    data: list[dict[str, Any]] = [
        {
            "sandbox": row.label,
            "tier": row.identity.tier,
            "actions": str(row.length),
            "provenance": row.provenance,
            "n": None,
            "flags": list(row.flags),
            "trajectories": MILLION,
            "worker_hours": row.worker_hours.value if row.worker_hours else None,
        }
        for row in rows
    ]
    lines = [
        MarkLine(f"{cut(clean(row.label), NAME_COLUMNS)} {row.length}", f"{hours(one['worker_hours'])} h, no interval")
        for row, one in zip(rows, data, strict=True)
    ]

    def draw(sheet: Sheet) -> None:
        axes = lines_axes(sheet, lines, foot=14)
        low, high = limits([one["worker_hours"] for one in data], log=True)
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        along_x(axes, amounts(low, high, log=True), "worker-hours of a million trajectories")
        for number, one in enumerate(data):
            axes.plot(one["worker_hours"], number + 0.1, "D", color=light(MUTED), markerfacecolor="none", markersize=6)

    title = f"PUBLISHED: {cut(clean(published.title), 60)}"
    about = f"From {clean(published.source)}. " + "; ".join(f"{line.name}: {line.told}" for line in lines)
    name = f"worker-hours-published-{file_name(published.name)}"
    return Panel(name, title, about, lines_height(len(lines), 14), draw, data, "PUBLISHED")


def _hours(material: Material, row: Row) -> dict[str, Any]:
    """Of a million."""
    projection = material.projected(row)
    assert projection is not None
    assert projection.worker_hours is not None
    value, low, high = projection.worker_hours
    return {"trajectories": MILLION, "worker_hours": value, "low": low, "high": high}


def _draw(sheet: Sheet, material: Material, rows: list[Row], data: list[dict[str, Any]], names: list[str]) -> None:
    axes = sheet.axes(left=40, bottom=38 + legend_height(len(rows), 1), top=20)
    share = FIRST / MILLION
    ends = [one["worker_hours"] * part for one in data for part in (share, 1.0)]
    low, high = limits(ends, log=True)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(FIRST, MILLION)
    axes.set_ylim(low, high)
    along_x(axes, amounts(FIRST, MILLION, log=True), "trajectories")
    along_y(axes, amounts(low, high, log=True), "worker-hours")
    marks = []
    for row, one, name in zip(rows, data, names, strict=True):
        colour, mode = light(material.look(row).role), row.identity.mode
        hours_at = [one["worker_hours"] * share, one["worker_hours"]]
        axes.plot([FIRST, MILLION], hours_at, color=colour, linestyle=style(mode), linewidth=1.4)
        if one["low"] and one["high"]:
            lows, highs = ([one[end] * share, one[end]] for end in ("low", "high"))
            axes.fill_between([FIRST, MILLION], lows, highs, color=colour, alpha=0.18, linewidth=0)
        marks.append((name, key(material.look(row), mode, marked=False)))
    sheet.legend(marks, 1)
