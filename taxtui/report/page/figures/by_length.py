"""Completion over the number of actions."""

from __future__ import annotations

from typing import Any, Final

from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.page.material import Material
from taxtui.report.page.palette import light, style
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS, Tick, durations, limits
from taxtui.report.page.settings import Setting, identified, kind_of
from taxtui.report.page.sheet import Sheet, along_x, along_y, key, legend_height

COLUMNS: Final = 1
MEASURE: Final = "trajectory"


def figures(material: Material) -> list[Figure]:
    """A panel per setting in which several lengths were measured."""
    notes = material.notes(
        "Medians with their 95 % intervals; both axes are logarithmic. Solid: exec, dashed: session. A fixed start is "
        "spread over more actions the longer the trajectory is: no command becomes faster.",
    )
    panels = [
        _panel(material, setting) for setting in material.settings if len({row.length for row in _rows(setting)}) > 1
    ]
    return [Figure("length", "Completion by length", panels, notes)]


def _rows(setting: Setting) -> list[MeasuredRow]:
    return [row for row in setting.rows if row.length.mean and row.summary(MEASURE)]


def _panel(material: Material, setting: Setting) -> Panel:
    data = [_point(row) for row in _rows(setting)]
    rows = _rows(setting)
    kinds = material.kinds(rows)
    foot = legend_height(len(kinds), COLUMNS)

    def draw(sheet: Sheet) -> None:
        axes = sheet.axes(left=48, bottom=38 + foot, top=20)
        at = sorted({item["mean_actions"] for item in data})
        ends = [end * NS for item in data for end in (item["low_ns"], item["p50_ns"], item["high_ns"]) if end]
        low, high = limits(ends, log=True)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(*limits(at, log=True))
        axes.set_ylim(low, high)
        along_x(axes, [Tick(actions, f"{actions:g}") for actions in at], "actions")
        along_y(axes, durations(low, high, log=True), "completion")
        for label, mode in kinds:
            group = [
                item
                for row, item in zip(rows, data, strict=True)
                if (row.own_label, row.identity.mode) == (label, mode)
            ]
            look = material.looks[label]
            colour = light(look.role)
            x, y = [item["mean_actions"] for item in group], [item["p50_ns"] * NS for item in group]
            axes.plot(x, y, color=colour, linestyle=style(mode), linewidth=1.2, marker=look.marker, markersize=4)
            for item in group:
                if item["low_ns"] is not None and item["high_ns"] is not None:
                    axes.plot(
                        [item["mean_actions"]] * 2,
                        [item["low_ns"] * NS, item["high_ns"] * NS],
                        color=colour,
                        linewidth=1,
                    )
        sheet.legend([(name, key(material.looks[label], mode)) for (label, mode), name in kinds.items()], COLUMNS)

    about = "Completion over actions: " + "; ".join(
        f"{kind_of(row)} at {item['actions']}: {item['p50_ns'] / 1e6:.3g} ms, n={item['n']}"
        for row, item in zip(rows, data, strict=True)
    )
    return Panel(f"length-{setting.name}", setting.title, about, 230 + foot, draw, data, setting.apart)


def _point(row: MeasuredRow) -> dict[str, Any]:
    summary = row.summary(MEASURE)
    assert summary is not None
    p50 = summary.p50
    values = {"p50_ns": p50.value, "low_ns": p50.low, "high_ns": p50.high}
    return {**identified(row), "mean_actions": float(row.length.mean), **values}
