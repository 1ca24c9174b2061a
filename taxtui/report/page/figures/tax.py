"""The tax of a trajectory by what it consists of."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from taxtui.report.measured.rows import TAXES, Row
from taxtui.report.numbers import NOTHING, between, duration
from taxtui.report.page.lines import MarkLine
from taxtui.report.page.material import Material
from taxtui.report.page.palette import role_of
from taxtui.report.page.panel import Figure, Panel
from taxtui.report.page.scales import NS, durations
from taxtui.report.page.settings import Setting, identified, name_in
from taxtui.report.page.stacks import Stack, draw_stacks, stacks_height
from taxtui.report.words import CAUSES

ROLES: Final = {CAUSES[cause]: role_of(cause) for cause in TAXES}


def figures(material: Material) -> list[Figure]:
    """One panel per setting."""
    panels = [_panel(material, setting) for setting in material.settings if any(row.good for row in setting.rows)]
    notes = material.notes(
        f"Per successful trial: held − think − work = {' + '.join(TAXES)} trials. On the right the tax with its 95 % "
        "interval and its share of what was held; ≥ ≤: the commands' own time is not known, so only limits are.",
    )
    return [Figure("tax", "The tax by cause", panels, notes)]


def _panel(material: Material, setting: Setting) -> Panel:
    rows = [row for row in setting.rows if row.good]
    stacks, data = [], []
    for row in rows:
        causes = {cause: ns or 0.0 for cause, ns in row.tax.causes.items()} if row.tax else {}
        stacks.append(
            Stack(
                MarkLine(f"{name_in(row, rows, material.letters(row))}, n={len(row.good):,}", _told(row)),
                {CAUSES[cause]: ns * NS for cause, ns in causes.items()},
            )
        )
        data.append({**identified(row), **_amounts(row), **{f"{cause}_ns": ns for cause, ns in causes.items()}})
    longest = max(sum(stack.parts.values()) for stack in stacks)
    draw = partial(draw_stacks, stacks=stacks, roles=ROLES, ticks=durations(0, longest, log=False))
    about = "Tax: " + "; ".join(f"{stack.line.name}: {stack.line.told}" for stack in stacks)
    return Panel(f"tax-{setting.name}", setting.title, about, stacks_height(stacks), draw, data, setting.apart)


def _told(row: Row) -> str:
    if row.tax is not None:
        value, _, limits = duration(*row.tax.total).partition("\n")
        return f"{value}{f' ({limits})' if limits else ''}, {row.tax.share:.0%}"
    if row.tax_between_ns is not None:
        return between(row.tax_between_ns, duration).replace("\n", ", ")
    return NOTHING


def _amounts(row: Row) -> dict[str, Any]:
    value, low, high = row.tax.total if row.tax else (None, None, None)
    at_least, at_most = row.tax_between_ns or (None, None)
    return {"tax_ns": value, "low_ns": low, "high_ns": high, "at_least_ns": at_least, "at_most_ns": at_most}
