"""What ``taxtui compare`` prints: one cell per row, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costmodel.comparison import Change
from costmodel.uncertainty import Interval
from taxtui.report.formats import Section
from taxtui.report.numbers import rounded_seconds, seconds, span
from taxtui.report.projected.record import record
from taxtui.report.projected.sections import marks_of, name_of
from taxtui.terminal_text import clean


def section(changes: Sequence[Change], before: str, after: str) -> Section:
    """The table; seconds are what one delivered trajectory holds a worker for."""
    marks = marks_of([change.after for change in changes])
    lines = []
    for change in changes:
        name = name_of(change.after)
        if change.before.identity.label != change.after.identity.label:
            name = f"{clean(change.before.label)} → {name}"
        tie = " tie" if change.tie else ""
        lines.append(
            [
                name,
                _held(change.before.held_per_success_s),
                _held(change.after.held_per_success_s),
                f"{_signed(change.held_s.value)}{tie}\n{span(change.held_s, _signed)}",
                f"{change.ratio:.3f}x",
                marks.of(change.after.flags),
            ]
        )
    notes = [
        "Seconds that one delivered trajectory holds a worker for, failures included; second lines: 95 % intervals."
    ]
    notes += marks.notes()
    head = ["sandbox\ntier n mode", "before\ns", "after\ns", "change\ns", "ratio\n", "flags\n"]
    return Section(f"{clean(before)} → {clean(after)}", head, lines, notes)


def records(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """The same as plain data, with both rows whole."""
    return [
        {
            "held_s": change.held_s._asdict(),
            "ratio": change.ratio,
            "tie": change.tie,
            "before": record(change.before),
            "after": record(change.after),
        }
        for change in changes
    ]


def _held(interval: Interval | None) -> str:
    return f"{seconds(interval.value if interval else None)}\n{span(interval, rounded_seconds)}"


def _signed(value: float) -> str:
    return f"{value:+.4g}"
