"""Savings by actions of a sandbox's life cycle as a table and as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from costmodel import Saving, Threshold
from taxtui.report.cells import SHORT, Content, amount_cell
from taxtui.report.formats import Report, Section
from taxtui.report.numbers import number
from taxtui.terminal_text import clean

HEAD: Final = ["action", "$ saved\nper step", "s saved\nper step", "saves nothing from"]
NOTES: Final = {
    "suspend": "suspend: a suspended sandbox keeps its pod; nodes cost the same.",
    "fork": "fork: each prompt's snapshot is prepared once and billed; storing snapshots is not in the bill.",
    "recycle": "recycle: a reset can leave traces of the rollout before (contamination); "
    "taxtui run --acquire reset checks for them.",
    "prebuild": "prebuild: the builds themselves are not in the bill, before the run or during it.",
}
"""A limit of each action's answer."""


def report(results: Sequence[tuple[str, Sequence[Saving]]]) -> Report:
    """Return the savings of each row, by its name."""
    return Report(lambda: sections(results), lambda: records(results))


def sections(results: Sequence[tuple[str, Sequence[Saving]]]) -> list[Section]:
    """Return one table per row, with a line per action; the notes stand below the last."""
    tables = []
    for name, own in results:
        tables.append(Section(f"{name}: what if", HEAD, [_row(effect) for effect in own], []))
    effects = [effect for _, own in results for effect in own]
    notes = ["Savings per training step; a negative saving is a loss. Each action is compared alone."]
    assumed = {one.field: one for effect in effects for one in effect.assumed}
    notes += [
        f"assumed: {one.field} {number(one.low)} to {number(one.high)} s ({clean('; '.join(one.sources))}). "
        f"State yours: --set {one.field}=SECONDS"
        for one in assumed.values()
    ]
    if not all(effect.reuses for effect in effects):
        notes.append("recycle: no sandbox is reused, so nothing is saved. Use fewer workers than rollouts in a step.")
    notes += [NOTES[action] for action in dict.fromkeys(effect.action for effect in effects)]
    tables[-1] = tables[-1]._replace(notes=notes)
    return tables


def records(results: Sequence[tuple[str, Sequence[Saving]]]) -> list[dict[str, Any]]:
    """Return one mapping per row and action, unrounded."""
    return [
        {
            "row": name,
            "action": effect.action,
            "usd_per_step": None if effect.usd is None else effect.usd._asdict(),
            "s_per_step": effect.step_s._asdict(),
            "assumed": [one._asdict() for one in effect.assumed],
            "thresholds": [one._asdict() for one in effect.thresholds],
        }
        for name, effects in results
        for effect in effects
    ]


def _row(effect: Saving) -> Sequence[Content]:
    if not effect.reuses:
        return [effect.action, "–", "–", "no sandbox is reused"]
    amounts = (amount_cell(amount, SHORT, signed=True) for amount in (effect.usd, effect.step_s))
    limit = (effect.step_s if effect.usd is None else effect.usd).high
    verb = "loses" if limit is not None and limit < 0 else "no clear saving"
    return [effect.action, *amounts, "\n".join(_threshold(one, verb) for one in effect.thresholds) or "–"]


def _threshold(one: Threshold, verb: str) -> str:
    unit = "" if one.field == "suspended_usd_hour" else " s"
    if not one.saves:
        return f"{verb} at any {one.field}"
    return (
        f"{one.field} {'above ' * (one.value is None)}{number(one.searched if one.value is None else one.value)}{unit}"
    )
