"""Savings by actions of a sandbox's life cycle, as tables and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from costmodel import Saving, Threshold
from taxtui.report.cells import Content, amount_cell
from taxtui.report.formats import Report, Section
from taxtui.report.formats.json_rows import plain
from taxtui.report.numbers import SHORT, number
from taxtui.terminal_text import clean

HEAD: Final = ["action", "$ saved\nper step", "s saved\nper step", "no saving at or above"]
NOTES: Final = {
    "suspend": "suspend: a suspended sandbox keeps its pod; nodes cost the same.",
    "fork": "fork: each prompt's snapshot is prepared once and billed; the storage of snapshots is not in the bill.",
    "recycle": "recycle: sandboxes are reused only with fewer workers than rollouts in a step. A reset can leave "
    "traces of the previous rollout (contamination); taxtui run --acquire reset checks for traces.",
    "prebuild": "prebuild: the builds are not in the bill.",
}
"""Action → limit of its answer."""


def report(results: Sequence[tuple[str, Sequence[Saving]]]) -> Report:
    """Return the savings of each row, by its name."""
    return Report(lambda: sections(results), lambda: records(results))


def sections(results: Sequence[tuple[str, Sequence[Saving]]]) -> list[Section]:
    """Return one table per row, with a line per action; the last table has the notes."""
    tables = [Section(f"{name}: what if", HEAD, [_row(effect) for effect in effects], []) for name, effects in results]
    effects = [effect for _, savings in results for effect in savings]
    notes = ["Savings per training step; a negative saving is a loss. Each action is compared alone."]
    assumptions = {item.field: item for effect in effects for item in effect.assumed}
    notes += [
        f"assumed: {item.field} {number(item.low)} to {number(item.high)} s ({clean('; '.join(item.sources))}). "
        f"State yours: --set {item.field}=SECONDS"
        for item in assumptions.values()
    ]
    notes += [NOTES[action] for action in dict.fromkeys(effect.action for effect in effects)]
    tables[-1] = tables[-1]._replace(notes=notes)
    return tables


def records(results: Sequence[tuple[str, Sequence[Saving]]]) -> list[dict[str, Any]]:
    """Return one mapping per row and action, unrounded."""
    return [
        {
            "row": name,
            "action": effect.action,
            "usd_per_step": plain(effect.usd),
            "s_per_step": plain(effect.step_s),
            "assumed": plain(effect.assumed),
            "thresholds": plain(effect.thresholds),
        }
        for name, effects in results
        for effect in effects
    ]


def _row(effect: Saving) -> Sequence[Content]:
    amounts = (amount_cell(amount, SHORT, signed=True) for amount in (effect.usd, effect.step_s))
    limit = (effect.step_s if effect.usd is None else effect.usd).high
    verb = "loses" if limit is not None and limit < 0 else "no clear saving"
    return [effect.action, *amounts, "\n".join(_text(item, verb) for item in effect.thresholds) or "–"]


def _text(threshold: Threshold, verb: str) -> str:
    if not threshold.saves:
        return f"{verb} at any {threshold.field}"
    unit = "" if threshold.field == "suspended_usd_hour" else " s"
    if threshold.value is None:
        return f"{threshold.field} above {number(threshold.searched)}{unit}"
    return f"{threshold.field} {number(threshold.value)}{unit}"
