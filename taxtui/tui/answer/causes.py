"""What the places of one work spend their time on, as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from costmodel.analysis.ranking import HELD, Answer, Entry, WorkLine
from costmodel.units import NS_PER_S
from taxtui.report.numbers import duration, number
from taxtui.terminal_text import clean
from taxtui.tui.stacked_bars import Bar

UNKNOWN: Final = "what it consists of is not known"


def title(found: Answer, line: WorkLine | None) -> str:
    """What the bars are about."""
    unit = "one trajectory" if found.measure == HELD else "worker-hours"
    return f"{unit} by cause{f' · {clean(line.name)}' if line else ''}"


def bars(found: Answer, line: WorkLine | None) -> Sequence[Bar]:
    """A bar for each place of the work whose causes are known, in the unit of the answer."""
    return [bar for entry in (line.entries if line else ()) if (bar := _bar(found, entry)) is not None]


def _bar(found: Answer, entry: Entry) -> Bar | None:
    causes, hours = entry.row.by_cause_worker_hours, entry.row.worker_hours
    if causes is None or hours is None or entry.amount is None or not hours.value:
        return None
    scale = entry.amount.value / hours.value
    parts = {cause: spent * scale for cause, spent in causes.told().items() if spent}
    value = number(entry.amount.value) if found.measure != HELD else duration(entry.amount.value * NS_PER_S)
    tax = entry.row.tax_worker_hours
    share = "" if tax is None else f" · {tax.value / hours.value:.0%} tax"
    return Bar(entry.place.label, entry.place.name, parts, f"{value}{share}")
