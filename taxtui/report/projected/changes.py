"""What ``taxtui compare`` prints: one cell per row, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from costmodel.analysis.baseline import Change, Unpaired
from costmodel.analysis.ranking import Work
from costmodel.projection import warnings
from costmodel.projection.row import Projection
from costmodel.projection.tax_bounds import Reference
from costmodel.statistics.intervals import Interval
from costmodel.statistics.verdict import CANNOT_TELL, DIFFERS, TIE, UNKNOWN
from taxtui.report import variation
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING, UNSPLIT, between, rounded_seconds, stacked
from taxtui.report.projected.record import record
from taxtui.report.projected.sections import marks_of, name_of
from taxtui.terminal_text import clean

VERDICTS: Final = {TIE: "no difference", CANNOT_TELL: "inconclusive", UNKNOWN: ""}


def sections(
    changes: Sequence[Change], left: Unpaired, before: str, after: str, reference: Reference | None
) -> list[Section]:
    """What is held, what the tax can be where a row does not tell it, and what was ``left`` without a partner."""
    labels = list(dict.fromkeys(change.after.identity.label for change in changes))
    changes = sorted(changes, key=lambda one: (labels.index(one.after.identity.label), Work.of(one.after)))
    found = [_held_times(changes, before, after)]
    if any(row.tax_between_worker_hours for change in changes for row in (change.before, change.after)):
        found.append(_taxes(changes, reference))
    return [*found[:-1], found[-1]._replace(notes=[*found[-1].notes, *not_paired(left, before, after)])]


def not_paired(left: Unpaired, before: str, after: str) -> list[str]:
    """A line for each recording that has rows which the other has no equal of."""
    sides = ((left.before, before), (left.after, after))
    return [
        f"Not compared, in {clean(name)} alone: {', '.join(name_of(row).replace(chr(10), ' ') for row in rows)}."
        for rows, name in sides
        if rows
    ]


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
    rows = [row for change in changes for row in (change.before, change.after)]
    marks = marks_of(rows)
    lines = []
    for change in changes:
        ratio = Interval(change.ratio, change.ratio_low, change.ratio_high)
        lines.append(
            [
                _names(change),
                stacked(change.before.held_per_success_s),
                stacked(change.after.held_per_success_s),
                stacked(change.held_s, signed=True),
                f"{stacked(ratio, unit='x')}",
                "disturbed" if _disturbed(change) else _verdict(change),
                f"{marks.of(change.before.flags)}\n{marks.of(change.after.flags)}",
            ]
        )
    notes = ["Seconds that one delivered trajectory holds a worker for, failures included; below, ± of 95 %."]
    told = variation.in_words(row.evidence.basis for row in rows if row.evidence)
    notes += [told] if told else []
    notes += dict.fromkeys(
        f"inconclusive {change.verdict.reason}: more than varies within the runs, less than so few differ by."
        for change in changes
        if change.verdict.kind == CANNOT_TELL
    )
    disturbed = sum(map(_disturbed, changes))
    if disturbed:
        notes.append(
            f"Disturbed: {disturbed} of {len(changes)} changes have no verdict; measure again on an idle machine."
        )
    notes += marks.notes()
    head = [
        "sandbox\ntier n mode",
        "before\ns",
        "after\ns",
        "change\ns",
        "ratio\n",
        "verdict\n",
        "flags: before\nafter",
    ]
    return Section(f"{clean(before)} → {clean(after)}", head, lines, notes)


def _verdict(change: Change) -> str:
    """Return ``better`` or ``worse`` where the two differ, else why they do not."""
    if change.verdict.kind == DIFFERS:
        return "worse" if change.held_s.value > 0 else "better"
    return VERDICTS[change.verdict.kind]


def _disturbed(change: Change) -> bool:
    return any(warnings.DISTURBED in row.flags for row in (change.before, change.after))


def _names(change: Change) -> str:
    """Of the cell; of both where they are not equal."""
    name, earlier = name_of(change.after), name_of(change.before)
    if name == earlier:
        return name
    (label, details), (was, did) = (text.split("\n") for text in (name, earlier))
    first = label if label == was else f"{was} → {label}"
    return f"{first}\n{details if details == did else f'{did} → {details}'}"


def records(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """The same as plain data, with both rows whole."""
    return [
        {
            "held_s": change.held_s._asdict(),
            "ratio": change.ratio,
            "ratio_interval": {"low": change.ratio_low, "high": change.ratio_high},
            "tie": change.verdict.tie,
            "verdict": change.verdict._asdict(),
            "before": record(change.before),
            "after": record(change.after),
        }
        for change in changes
    ]
