"""Costs of the sandbox in the training run by cause: in dollars with prices, else in worker-hours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from costmodel import CAUSES as STEP_CAUSES
from costmodel import ByCause, Interval, Row
from taxtui.report.marks import FlagMarks
from taxtui.report.measured.rows import PROVENANCES
from taxtui.report.numbers import NOTHING, money, number, span
from taxtui.report.page.figure import Figure, Panel
from taxtui.report.page.material import Material
from taxtui.report.page.panels import MOST_ROWS, NAME_COLUMNS, file_name, fitting, omission_notes
from taxtui.report.page.scales import amounts
from taxtui.report.page.stacks import Stack, draw_stacks, stacks_height
from taxtui.report.projected.attributed import unit_of
from taxtui.report.projected.sections import marks_of
from taxtui.report.words import CAUSES
from taxtui.terminal_text import clean, cut

NAME: Final = "attribution"
MEASURED: Final = "measured"
TAX_CAUSES: Final = tuple(cause for cause in ByCause._fields if cause not in ("work", "unsplit", "think", "wrapper"))


def figures(material: Material) -> list[Figure]:
    """Return a figure with a panel per tier; nothing without a training run."""
    run = material.run
    if run is None:
        return []
    steps = any(row.attribution is not None for row in run.rows)
    rows = [row for row in run.rows if (row.attribution if steps else row.by_cause_worker_hours) is not None]
    rows.sort(key=lambda row: (row.provenance != MEASURED, row.provenance, row.identity.tier))
    groups = [(key, list(group)) for key, group in groupby(rows, key=lambda row: (row.provenance, row.identity.tier))]
    marks = marks_of(rows)
    chosen = fitting([min(MOST_ROWS, len(members)) for _, members in groups])
    panels = [_panel(*groups[number][0], groups[number][1], marks) for number in chosen]
    notes = [
        "Each cause: the saving of the same run without this cause, simulated with the same random numbers. On the "
        "right the saving without all causes, with the 95 % interval. Causes need not add up, because two may overlap."
        if steps
        else "Worker-hours of the tax by cause; on the right the tax with its 95 % interval.",
    ]
    notes += [*marks.of_all(), *marks.brief()]
    omitted = [clean(tier) for number, ((_, tier), _) in enumerate(groups) if number not in chosen]
    hidden = [(clean(tier), len(members) - MOST_ROWS) for (_, tier), members in map(groups.__getitem__, chosen)]
    notes += omission_notes(omitted, hidden)
    return [Figure(NAME, "Costs of the sandbox in this training run", panels, notes)]


def _panel(provenance: str, tier: str, rows: Sequence[Row], marks: FlagMarks) -> Panel:
    rows = rows[:MOST_ROWS]
    dollars = all(row.attribution is not None and row.attribution.run.usd is not None for row in rows)
    results = [_parts(row, dollars=dollars) for row in rows]
    causes = STEP_CAUSES if any(row.attribution is not None for row in rows) else TAX_CAUSES
    show = money if dollars else number
    stacks = []
    for row, (whole, parts) in zip(rows, results, strict=True):
        limits = span(whole, show)
        text = NOTHING if whole is None else f"{show(whole.value)}{f' ({limits})' if limits else ''}"
        stacks.append(Stack(_name(row, marks), text, {CAUSES[cause]: max(0.0, size) for cause, size in parts.items()}))
    top = max(sum(stack.parts.values()) for stack in stacks)
    unit = "$" if dollars else ""
    roles = {CAUSES[cause]: cause for cause in causes}
    draw = partial(draw_stacks, stacks=stacks, roles=roles, ticks=amounts(top, unit))
    data = [_record(row, whole, parts, unit) for row, (whole, parts) in zip(rows, results, strict=True)]
    prefix = PROVENANCES.get(provenance, "" if provenance == MEASURED else provenance.upper())
    title = ", ".join(filter(None, (prefix, cut(clean(tier), 40), "dollars" if dollars else "worker-hours")))
    about = "; ".join(f"{stack.name}: {stack.amount}" for stack in stacks)
    name = f"attribution-{file_name(', '.join(filter(None, (prefix, clean(tier)))))}"
    return Panel(name, title, about, stacks_height(stacks), draw, data, prefix)


def _name(row: Row, marks: FlagMarks) -> str:
    trials = "" if row.trials is None else f", n={row.trials:,}"
    letters = marks.of(row.flags)
    label = cut(clean(row.label), NAME_COLUMNS)
    return f"{label} {row.length} {clean(row.identity.mode)}{f' [{letters}]' if letters else ''}{trials}"


def _parts(row: Row, *, dollars: bool) -> tuple[Interval | None, dict[str, float]]:
    if row.attribution is None:
        causes = row.by_cause_worker_hours
        assert causes is not None
        return row.tax_worker_hours, {cause: getattr(causes, cause) or 0.0 for cause in TAX_CAUSES}
    unit = unit_of(row.attribution)
    if not dollars:
        unit = unit._replace(usd=False)
    shares = row.attribution.causes.items()
    parts = {cause: 0.0 if share is None else unit.of(share).value for cause, share in shares}
    return unit.of(row.attribution.sandbox), parts


def _record(row: Row, whole: Interval | None, parts: dict[str, float], unit: str) -> dict[str, Any]:
    value, low, high = whole or (None, None, None)
    return {
        "sandbox": row.label,
        "tier": row.identity.tier,
        "actions": str(row.length),
        "mode": row.identity.mode,
        "provenance": row.provenance,
        "n": row.trials,
        "flags": list(row.flags),
        "unit": "usd" if unit else "worker_hours",
        "total": value,
        "low": low,
        "high": high,
        **parts,
    }
