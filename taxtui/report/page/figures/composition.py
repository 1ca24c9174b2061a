"""Completion time by cause, as bars."""

from __future__ import annotations

from functools import partial
from typing import Final

from taxtui.report.measured.rows import PARTS
from taxtui.report.numbers import NS, percent, plus_minus
from taxtui.report.page.figure import Figure, Panel
from taxtui.report.page.material import Material
from taxtui.report.page.panels import PanelRows, identified, name_in
from taxtui.report.page.scales import NS as S_PER_NS
from taxtui.report.page.scales import durations
from taxtui.report.page.stacks import Stack, draw_stacks, stacks_height
from taxtui.report.words import CAUSES

ROLES: Final = {CAUSES[part]: part for part in PARTS}


def figures(material: Material) -> list[Figure]:
    """Return one figure."""
    panels = [
        _panel(material, group) for group in material.panels if any(row.mean_ns("trajectory") for row in group.rows)
    ]
    notes = material.notes(
        "Means over the successful trials, from the create request to the end of the last action, without think "
        "time and throttles. On the right the mean with its 95 % interval, and the share of the tax.",
    )
    return [Figure("causes", "Time by cause", panels, notes)]


def _panel(material: Material, group: PanelRows) -> Panel:
    rows = [row for row in group.rows if row.mean_ns("trajectory")]
    stacks, data = [], []
    for row in rows:
        parts = {part: row.part_ns(part) or 0.0 for part in PARTS}
        summary = row.summary("trajectory")
        assert summary is not None
        mean = summary.mean
        text = plus_minus(mean, unit=NS) + (f", {percent(row.tax.share)} tax" if row.tax else "")
        name = f"{name_in(row, rows, material.letters(row))}, n={len(row.good):,}"
        stacks.append(Stack(name, text, {CAUSES[part]: ns * S_PER_NS for part, ns in parts.items()}))
        interval = {"mean_ns": mean.value, "low_ns": mean.low, "high_ns": mean.high}
        data.append({**identified(row), **interval, **{f"{part}_ns": ns for part, ns in parts.items()}})
    ticks = durations(0, max(sum(stack.parts.values()) for stack in stacks), log=False)
    draw = partial(draw_stacks, stacks=stacks, roles=ROLES, ticks=ticks)
    about = "Mean completion: " + "; ".join(f"{stack.name}: {stack.amount}" for stack in stacks)
    return Panel(f"causes-{group.name}", group.title, about, stacks_height(stacks), draw, data, group.provenance)
