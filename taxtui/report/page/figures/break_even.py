"""Break-even of two substrates: occupied time as a fixed part and a part per action."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from costmodel import BreakEven, Row, crossing_point
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.page.material import Material
from taxtui.report.page.palette import INK, light
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import Tick, durations
from taxtui.report.page.settings import NAME_COLUMNS, Setting, file_name, identified, mode_of
from taxtui.report.page.sheet import Sheet, along_x, along_y, key, legend_height
from taxtui.terminal_text import cut

COLUMNS: Final = 1


def figures(material: Material) -> list[Figure]:
    """A panel per setting and mode in which two substrates were measured."""
    panels = []
    texts: list[str] = []
    for setting in material.settings:
        for mode, group in groupby(
            sorted(setting.rows, key=lambda row: row.identity.mode), lambda row: row.identity.mode
        ):
            lines = _lines(material, list(group))
            if len(lines) > 1:
                panel, words = _panel(material, setting, mode, lines)
                panels.append(panel)
                texts += words
    notes = [
        "Occupied time of a delivered trajectory, as a fixed part and a part per action, from the trials of the "
        "longest length that was measured; the cheapest per trajectory there is what the others are compared with. "
        "Both cost the same where two lines cross; the band is Fieller's 95 % interval of the crossing.",
        *texts,
        *material.flagged(),
    ]
    return [Figure("break-even", "Break-even", panels, notes)]


def _lines(material: Material, rows: Sequence[MeasuredRow]) -> list[tuple[MeasuredRow, Row]]:
    """Return the row of the greatest length for each label, the cheapest first."""
    result: dict[str, tuple[MeasuredRow, Row]] = {}
    for row in rows:
        item = material.projected(row)
        if item is not None and item.evidence is not None and item.evidence.line is not None and row.length.mean:
            result[row.label] = (row, item)
    longest = max((row.length.mean for row, _ in result.values()), default=0)
    same = [(row, item) for row, item in result.values() if row.length.mean == longest]
    return sorted(same, key=lambda pair: pair[1].held_per_success_s.value if pair[1].held_per_success_s else 0.0)


def _panel(
    material: Material, setting: Setting, mode: str, lines: Sequence[tuple[MeasuredRow, Row]]
) -> tuple[Panel, list[str]]:
    base, cheapest = lines[0]
    assert cheapest.evidence is not None
    assert cheapest.evidence.line is not None
    title = f"{setting.title} {mode_of(base)}".strip()
    data, told = [], []
    crossings: list[BreakEven] = []
    for row, item in lines:
        assert item.evidence is not None
        assert item.evidence.line is not None
        line = item.evidence.line
        own: dict[str, Any] = {**identified(row), "fixed_s": line.fixed_s, "per_action_s": line.per_action_s}
        if row is not base:
            even = crossing_point(line, cheapest.evidence.line)
            crossings.append(even)
            own |= {"against": base.label, "at_actions": even.actions, "low": even.low, "high": even.high}
            told.append(f"{title}: {shown(row)} against {shown(base)}: {in_words(even)}.")
        data.append(own)
    longest = float(base.length.mean)
    foot = legend_height(len(lines), COLUMNS)

    def draw(sheet: Sheet) -> None:
        axes = sheet.axes(left=48, bottom=38 + foot, top=20)
        near = [even.actions for even in crossings if even.actions and even.actions < 4 * longest]
        end = max([longest, *near]) * 1.08
        top = max(item["fixed_s"] + item["per_action_s"] * end for item in data)
        axes.set_xlim(0, end)
        axes.set_ylim(0, top * 1.05)
        along_x(axes, [Tick(at, f"{at:g}") for at in _round_to(end)], "actions")
        along_y(axes, durations(0, top, log=False), "held per delivered trajectory")
        for item, (row, _) in zip(data, lines, strict=True):
            ends = [item["fixed_s"] + item["per_action_s"] * at for at in (0, end)]
            axes.plot([0, end], ends, color=light(material.look(row).role), linewidth=1.4)
        for even in crossings:
            if even.actions is None or even.actions > end:
                continue
            axes.axvline(even.actions, color=light(INK), linewidth=0.8, linestyle=(0, (2, 2)))
            if even.bounded and even.low is not None and even.high is not None:
                axes.axvspan(even.low, min(even.high, end), color=light(INK), alpha=0.08, linewidth=0)
        names = [
            (f"{shown(row)}{material.lettered([row])}, n={len(row.good):,}", key(material.look(row), "", marked=False))
            for row, _ in lines
        ]
        sheet.legend(names, COLUMNS)

    about = "; ".join(told)
    name = f"break-even-{setting.name}-{file_name(mode)}"
    return Panel(name, title, about, 220 + foot, draw, data, setting.apart), told


def shown(row: MeasuredRow) -> str:
    """Its label, as a picture has room for it."""
    return cut(row.label, NAME_COLUMNS)


def in_words(even: BreakEven) -> str:
    """Return the crossing of two lines with its interval."""
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
