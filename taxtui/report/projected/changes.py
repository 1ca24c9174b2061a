"""What ``taxtui compare`` prints: one cell per row, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from costmodel.bounds import Reference
from costmodel.comparison import Change
from costmodel.results import Projection
from costmodel.uncertainty import Interval
from costmodel.verdict import CANNOT_TELL, DIFFERS, TIE, UNKNOWN
from taxtui.report import variation
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING, UNSPLIT, between, number, rounded_seconds, span
from taxtui.report.projected.record import record
from taxtui.report.projected.sections import marks_of, name_of
from taxtui.terminal_text import clean

VERDICTS: Final = {DIFFERS: "differs", TIE: "tie", CANNOT_TELL: "cannot tell", UNKNOWN: ""}


def sections(changes: Sequence[Change], before: str, after: str, reference: Reference | None) -> list[Section]:
    """What is held, and what the tax can be where a row does not tell it."""
    found = [_held_times(changes, before, after)]
    if any(row.tax_between_worker_hours for change in changes for row in (change.before, change.after)):
        found.append(_taxes(changes, reference))
    return found


def _taxes(changes: Sequence[Change], reference: Reference | None) -> Section:
    lines = [[name_of(change.after), _tax(change.before), _tax(change.after)] for change in changes]
    rows = [row for change in changes for row in (change.before, change.after) if row.tax_between_worker_hours]
    substrates = dict.fromkeys(row.identity.substrate for row in rows)
    notes = [
        UNSPLIT,
        *(reference[name].in_words(clean(name)) for name in substrates if reference and name in reference),
    ]
    return Section("Tax of one delivered trajectory", ["sandbox\ntier n mode", "before\ns", "after\ns"], lines, notes)


def _tax(row: Projection) -> str:
    """Of the one trajectory that was projected, in seconds."""

    def shown(hours: float) -> str:
        return rounded_seconds(3600 * hours)

    if row.tax_between_worker_hours is not None:
        return between(row.tax_between_worker_hours, shown)
    return NOTHING if row.tax_worker_hours is None else shown(row.tax_worker_hours.value)


def _held_times(changes: Sequence[Change], before: str, after: str) -> Section:
    """The table; seconds are what one delivered trajectory holds a worker for."""
    marks = marks_of([change.after for change in changes])
    lines = []
    for change in changes:
        name = name_of(change.after)
        if change.before.identity.label != change.after.identity.label:
            name = f"{clean(change.before.label)} → {name}"
        lines.append(
            [
                name,
                _held(change.before.held_per_success_s),
                _held(change.after.held_per_success_s),
                f"{number(change.held_s.value, signed=True)}\n{span(change.held_s, signed=True)}",
                f"{change.ratio:.3f}x\n{VERDICTS[change.verdict.kind]}",
                marks.of(change.after.flags),
            ]
        )
    notes = ["Seconds that one delivered trajectory holds a worker for, failures included."]
    told = variation.in_words(row.evidence.basis for change in changes for row in change[:2] if row.evidence)
    notes += [told] if told else []
    notes += dict.fromkeys(
        f"cannot tell {change.verdict.reason}: more than varies within the runs, less than so few differ by."
        for change in changes
        if change.verdict.kind == CANNOT_TELL
    )
    notes += marks.notes()
    head = ["sandbox\ntier n mode", "before\ns", "after\ns", "change\ns", "ratio\nverdict", "flags\n"]
    return Section(f"{clean(before)} → {clean(after)}", head, lines, notes)


def records(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """The same as plain data, with both rows whole."""
    return [
        {
            "held_s": change.held_s._asdict(),
            "ratio": change.ratio,
            "tie": change.verdict.tie,
            "verdict": change.verdict._asdict(),
            "before": record(change.before),
            "after": record(change.after),
        }
        for change in changes
    ]


def _held(interval: Interval | None) -> str:
    return f"{rounded_seconds(interval.value if interval else None)}\n{span(interval)}"
