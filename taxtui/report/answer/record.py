"""The fields that an answer adds to a row of JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costmodel import TIE, Answer, Entry, Interval, ModeRatio, Row, WorkLine
from taxtui.report.answer.order import Key, key_of


def records(found: Answer) -> dict[Key, dict[str, Any]]:
    """The fields of every row that the answer was made of; all have the same."""
    modes = {key_of(mode.row): mode for mode in found.modes}
    return {key: record | _mode(modes.get(key)) for line in found.lines for key, record in _of_line(line)}


def _mode(found: ModeRatio | None) -> dict[str, Any]:
    """Return how many times longer a row by ``exec`` runs than the same workload by ``session``."""
    return {
        "session": found and found.session.identity.cell_id,
        "ratio_to_session": dict.fromkeys(Interval._fields) if found is None else found.ratio._asdict(),
        "verdict_to_session": found and found.verdict.kind,
    }


def _of_line(line: WorkLine) -> Iterator[tuple[Key, dict[str, Any]]]:
    ranked = line.ranked
    among, reference = {id(entry) for entry in ranked}, None if line.reference is None else line.at(line.reference)
    for entry in line.entries:
        against = None if entry.ratio is None or reference is None else reference.row
        told = _record(entry, against, ranked=id(entry) in among, cheapest=bool(ranked) and entry is ranked[0])
        yield key_of(entry.row), {"work": line.name, **told}


def _record(entry: Entry, against: Row | None, *, ranked: bool, cheapest: bool) -> dict[str, Any]:
    """``against``: the row that ``ratio`` is to; None of that row itself and of what is not ranked."""
    return {
        "place": entry.place.name,
        "ranked": ranked,
        "cheapest": cheapest,
        "against": against and against.identity.cell_id,
        "ratio": dict.fromkeys(Interval._fields) if entry.ratio is None else entry.ratio._asdict(),
        "verdict": entry.verdict and entry.verdict.kind,
        "tie": None if entry.verdict is None else entry.verdict.kind == TIE,
    }
