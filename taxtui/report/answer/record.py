"""What an answer adds to a row of json and csv."""

from __future__ import annotations

from typing import Any

from costmodel.answer import Answer, Entry, WorkLine
from costmodel.results import Projection
from costmodel.uncertainty import Interval
from costmodel.verdict import TIE
from taxtui.report.answer.order import Key, key_of


def records(found: Answer) -> dict[Key, dict[str, Any]]:
    """The fields of every row that the answer was made of; all have the same."""
    return {key_of(entry.row): _record(entry, line) for line in found.lines for entry in line.entries}


def _record(entry: Entry, line: WorkLine) -> dict[str, Any]:
    """``against``: the cell id of the row that ``ratio`` is to; null of that row itself and of what is not ranked."""
    reference = None if line.reference is None else line.at(line.reference)
    against: Projection | None = None if entry.ratio is None or reference is None else reference.row
    return {
        "work": line.name,
        "place": entry.place.name,
        "ranked": entry in line.ranked,
        "cheapest": line.cheapest is entry,
        "against": against and against.identity.cell_id,
        "ratio": dict.fromkeys(Interval._fields) if entry.ratio is None else entry.ratio._asdict(),
        "verdict": entry.verdict and entry.verdict.kind,
        "tie": None if entry.verdict is None else entry.verdict.kind == TIE,
    }
