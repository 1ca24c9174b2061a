"""Over the number of actions: completion, what it comes to per action, and where two substrates cost the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from costmodel.comparison import crossing
from costmodel.results import BreakEven, Projection
from taxtui.report.measured.rows import Row
from taxtui.report.page.material import Material
from taxtui.report.page.palette import INK, light, style
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS, Tick, durations, limits
from taxtui.report.page.settings import Setting, identified
from taxtui.report.page.sheet import Sheet, along_x, along_y, key, legend_height

COLUMNS: Final = 2
_MEASURES: Final = {"trajectory": "Completion", "amortized_per_action": "Per action, amortised: completion / actions"}


def figures(material: Material) -> list[Figure]:
    """Completion and its share per action; break-even."""
    notes = [
        "Medians with their 95 % intervals; both axes are logarithmic. Solid: exec, dashed: session. A fixed start is "
        "spread over more actions the longer the trajectory is: no command becomes faster.",
        *material.not_drawn,
    ]
    panels = [
        _panel(material, setting, measure)
        for setting in material.settings
        for measure in _MEASURES
        if len({row.length for row in _rows(setting, measure)}) > 1
    ]
    return [Figure("length", "Completion by length", panels, notes), _break_evens(material)]


def _rows(setting: Setting, measure: str) -> list[Row]:
    return [row for row in setting.rows if row.length.mean and row.summary(measure)]


def _panel(material: Material, setting: Setting, measure: str) -> Panel:
    data = [_point(row, measure) for row in _rows(setting, measure)]
    rows = _rows(setting, measure)
    kinds = list(dict.fromkeys((row.own_label, row.identity.mode) for row in rows))
    foot = legend_height(len(kinds), COLUMNS)

    def draw(sheet: Sheet) -> None:
        axes = sheet.axes(left=48, bottom=38 + foot, top=20)
        at = sorted({one["mean_actions"] for one in data})
        ends = [end * NS for one in data for end in (one["low_ns"], one["p50_ns"], one["high_ns"]) if end]
        low, high = limits(ends, log=True)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(*limits(at, log=True))
        axes.set_ylim(low, high)
        along_x(axes, [Tick(actions, f"{actions:g}") for actions in at], "actions")
        along_y(axes, durations(low, high, log=True), _MEASURES[measure])
        for label, mode in kinds:
            own = [
                one for row, one in zip(rows, data, strict=True) if (row.own_label, row.identity.mode) == (label, mode)
            ]
            look = material.looks[label]
            colour = light(look.role)
            x, y = [one["mean_actions"] for one in own], [one["p50_ns"] * NS for one in own]
            axes.plot(x, y, color=colour, linestyle=style(mode), linewidth=1.2, marker=look.marker, markersize=4)
            for one in own:
                if one["low_ns"] is not None and one["high_ns"] is not None:
                    axes.plot(
                        [one["mean_actions"]] * 2, [one["low_ns"] * NS, one["high_ns"] * NS], color=colour, linewidth=1
                    )
        sheet.legend([(f"{label} {mode}", key(material.looks[label], mode)) for label, mode in kinds], COLUMNS)

    about = f"{_MEASURES[measure]} over actions: " + "; ".join(
        f"{one['sandbox']} {one['mode']} at {one['actions']}: {one['p50_ns'] / 1e6:.3g} ms, n={one['n']}"
        for one in data
    )
    kind = "completion" if measure == "trajectory" else "per-action"
    title = setting.title if measure == "trajectory" else f"{setting.title}, per action"
    return Panel(f"length-{kind}-{setting.name}", title, about, 230 + foot, draw, data, setting.apart)


def _point(row: Row, measure: str) -> dict[str, Any]:
    summary = row.summary(measure)
    assert summary is not None
    p50 = summary.p50
    values = {"p50_ns": p50.value, "low_ns": p50.low, "high_ns": p50.high}
    return {**identified(row), "mean_actions": float(row.length.mean), **values}


def _break_evens(material: Material) -> Figure:
    panels = []
    told: list[str] = []
    for setting in material.settings:
        for mode, group in groupby(
            sorted(setting.rows, key=lambda row: row.identity.mode), lambda row: row.identity.mode
        ):
            lines = _lines(material, list(group))
            if len(lines) > 1:
                panel, words = _break_even_panel(material, setting, mode, lines)
                panels.append(panel)
                told += words
    notes = [
        "What a delivered trajectory holds a worker for, as a fixed part and a part per action, from the trials of the "
        "longest length that was measured; the cheapest per trajectory there is what the others are compared with. "
        "Where two lines cross, both cost the same; the band is Fieller's 95 % interval of that.",
        *told,
    ]
    return Figure("break-even", "Break-even", panels, notes)


def _lines(material: Material, rows: Sequence[Row]) -> list[tuple[Row, Projection]]:
    """By label the row of the greatest length, the cheapest first."""
    found: dict[str, tuple[Row, Projection]] = {}
    for row in rows:
        one = material.projected(row)
        if one is not None and one.evidence is not None and one.evidence.line is not None and row.length.mean:
            found[row.label] = (row, one)
    longest = max((row.length.mean for row, _ in found.values()), default=0)
    same = [(row, one) for row, one in found.values() if row.length.mean == longest]
    return sorted(same, key=lambda pair: pair[1].held_per_success_s.value if pair[1].held_per_success_s else 0.0)


def _break_even_panel(
    material: Material, setting: Setting, mode: str, lines: Sequence[tuple[Row, Projection]]
) -> tuple[Panel, list[str]]:
    base, cheapest = lines[0]
    assert cheapest.evidence is not None
    assert cheapest.evidence.line is not None
    data, told = [], []
    crossings: list[BreakEven] = []
    for row, one in lines:
        assert one.evidence is not None
        assert one.evidence.line is not None
        line = one.evidence.line
        own: dict[str, Any] = {**identified(row), "fixed_s": line.fixed_s, "per_action_s": line.per_action_s}
        if row is not base:
            even = crossing(line, cheapest.evidence.line)
            crossings.append(even)
            own |= {"against": base.label, "at_actions": even.actions, "low": even.low, "high": even.high}
            told.append(f"{setting.title} {mode}: {row.label} against {base.label}: {in_words(even)}.")
        data.append(own)
    longest = float(base.length.mean)
    foot = legend_height(len(lines), COLUMNS)

    def draw(sheet: Sheet) -> None:
        axes = sheet.axes(left=48, bottom=38 + foot, top=20)
        near = [even.actions for even in crossings if even.actions and even.actions < 4 * longest]
        end = max([longest, *near]) * 1.08
        top = max(one["fixed_s"] + one["per_action_s"] * end for one in data)
        axes.set_xlim(0, end)
        axes.set_ylim(0, top * 1.05)
        along_x(axes, [Tick(at, f"{at:g}") for at in _round_to(end)], "actions")
        along_y(axes, durations(0, top, log=False), "held per delivered trajectory")
        for one, (row, _) in zip(data, lines, strict=True):
            ends = [one["fixed_s"] + one["per_action_s"] * at for at in (0, end)]
            axes.plot([0, end], ends, color=light(material.look(row).role), linewidth=1.4)
        for even in crossings:
            if even.actions is None or even.actions > end:
                continue
            axes.axvline(even.actions, color=light(INK), linewidth=0.8, linestyle=(0, (2, 2)))
            if even.bounded and even.low is not None and even.high is not None:
                axes.axvspan(even.low, min(even.high, end), color=light(INK), alpha=0.08, linewidth=0)
        names = [(row.label, key(material.look(row), "", marked=False)) for row, _ in lines]
        sheet.legend(names, COLUMNS)

    title = f"{setting.title} {mode}".strip()
    about = "; ".join(told)
    name = f"break-even-{setting.name}-{mode}"
    return Panel(name, title, about, 220 + foot, draw, data, setting.apart), told


def in_words(even: BreakEven) -> str:
    """Where two lines cross, with its interval."""
    if not even.bounded:
        where = "at no length" if even.actions is None else f"at {even.actions:,.1f} actions"
        return f"{where}, but the data exclude none"
    if even.actions is None:
        return "at no length" if even.high is None else f"at no length (95 %: up to {even.high:,.1f} actions)"
    ends = "" if even.low is None or even.high is None else f" ({even.low:,.1f} … {even.high:,.1f})"
    return f"at {even.actions:,.1f} actions{ends}"


def _round_to(end: float) -> list[float]:
    step = next(step for step in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 10**9) if end / step <= 6)
    return [float(step * number) for number in range(int(end / step) + 1)]
