"""The time of a completion by cause, as bars."""

from __future__ import annotations

from functools import partial
from typing import Final

from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.measured.tables import PARTS
from taxtui.report.numbers import NS, percent, plus_minus
from taxtui.report.page.material import Material
from taxtui.report.page.palette import role_of
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS as S_PER_NS
from taxtui.report.page.scales import durations
from taxtui.report.page.settings import Setting, identified, name_in
from taxtui.report.page.stacks import Stack, draw_stacks, stacks_height
from taxtui.report.words import CAUSES

ROLES: Final = {CAUSES[part]: role_of(part) for part in PARTS}


def figures(material: Material) -> list[Figure]:
    """A panel per setting."""
    panels = [_panel(material, setting) for setting in material.settings if _rows(setting)]
    notes = material.notes(
        "Means over the trials that succeeded, from the create request to the end of the last action, without think "
        "time and throttles. On the right the mean with its 95 % interval, and the share of the tax.",
    )
    return [Figure("causes", "Time by cause", panels, notes)]


def parts_of(row: MeasuredRow) -> dict[str, float]:
    """Mean of each part of a completion, in ns, as the breakdown has it."""
    return {part: mean(row) for part, mean in PARTS.items()}


def _rows(setting: Setting) -> list[MeasuredRow]:
    return [row for row in setting.rows if row.mean_ns("trajectory")]


def _panel(material: Material, setting: Setting) -> Panel:
    rows = _rows(setting)
    stacks, data = [], []
    for row in rows:
        parts = parts_of(row)
        summary = row.summary("trajectory")
        assert summary is not None
        mean = summary.mean
        told = plus_minus(mean, unit=NS) + (f", {percent(row.tax.share)} tax" if row.tax else "")
        name = f"{name_in(row, rows, material.letters(row))}, n={len(row.good):,}"
        stacks.append(Stack(name, told, {CAUSES[part]: ns * S_PER_NS for part, ns in parts.items()}))
        ends = {"mean_ns": mean.value, "low_ns": mean.low, "high_ns": mean.high}
        data.append({**identified(row), **ends, **{f"{part}_ns": ns for part, ns in parts.items()}})
    ticks = durations(0, max(sum(stack.parts.values()) for stack in stacks), log=False)
    draw = partial(draw_stacks, stacks=stacks, roles=ROLES, ticks=ticks)
    about = "Mean completion: " + "; ".join(f"{stack.name}: {stack.amount}" for stack in stacks)
    return Panel(f"causes-{setting.name}", setting.title, about, stacks_height(stacks), draw, data, setting.apart)
