"""Where a completion goes: the mean of each part in time, and as shares of the whole by length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from taxtui.report.measured.rows import Row
from taxtui.report.measured.tables import PARTS
from taxtui.report.numbers import duration
from taxtui.report.page.lines import MarkLine
from taxtui.report.page.material import Material
from taxtui.report.page.palette import role_of
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS, durations
from taxtui.report.page.settings import Setting, identified, name_in
from taxtui.report.page.stacks import Stack, draw_stacks, stacks_height
from taxtui.report.words import CAUSES

ROLES: Final = {CAUSES[part]: role_of(part) for part in PARTS}


def figures(material: Material) -> list[Figure]:
    """In time, then in shares."""
    panels = [_panel(material, setting, shares=False) for setting in material.settings if _rows(setting)]
    shares = [_panel(material, setting, shares=True) for setting in material.settings if _rows(setting)]
    notes = material.notes(
        "Means over the trials that succeeded, from the create request to the end of the last action; think time and "
        "throttles are in none of it. Command time: what commands take in the sandbox; dispatch: the rest of theirs.",
    )
    return [
        Figure("latency", "Where a completion goes", panels, ["On the right the mean with its 95 % interval.", *notes]),
        Figure("composition", "The same as shares, by length", shares, notes),
    ]


def parts_of(row: Row) -> dict[str, float]:
    """Mean of each part of a completion, in ns, as the breakdown has it."""
    return {part: mean(row) for part, mean in PARTS.items()}


def _rows(setting: Setting) -> list[Row]:
    return [row for row in setting.rows if row.mean_ns("trajectory")]


def _panel(material: Material, setting: Setting, *, shares: bool) -> Panel:
    rows = _rows(setting)
    stacks, data = [], []
    for row in rows:
        parts = parts_of(row)
        summary = row.summary("trajectory")
        assert summary is not None
        mean = summary.mean
        value, _, limits = duration(*mean).partition("\n")
        largest = max(parts, key=lambda part: parts[part])
        share = f"{CAUSES[largest]} {parts[largest] / (sum(parts.values()) or 1):.0%}"
        told = share if shares else f"{value} ({limits})" if limits else value
        name = f"{name_in(row, rows, material.letters(row))}, n={len(row.good):,}"
        stacks.append(Stack(MarkLine(name, told), {CAUSES[part]: ns * NS for part, ns in parts.items()}))
        ends = {"mean_ns": mean.value, "low_ns": mean.low, "high_ns": mean.high}
        data.append({**identified(row), **ends, **{f"{part}_ns": ns for part, ns in parts.items()}})
    kind = "composition" if shares else "latency"
    ticks = None if shares else durations(0, max(sum(stack.parts.values()) for stack in stacks), log=False)
    draw = partial(draw_stacks, stacks=stacks, roles=ROLES, ticks=ticks)
    about = _in_words(stacks, "largest part" if shares else "mean completion")
    return Panel(f"{kind}-{setting.name}", setting.title, about, stacks_height(stacks), draw, data, setting.apart)


def _in_words(stacks: Sequence[Stack], what: str) -> str:
    found: list[Any] = [f"{stack.line.name}: {stack.line.told}" for stack in stacks]
    return f"By row, {what}: {'; '.join(found)}"
