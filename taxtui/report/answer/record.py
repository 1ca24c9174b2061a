"""Fields of an answer in a row of JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costmodel import TIE, Answer, CellIdentity, Entry, Interval, ModeRatio, Row, WorkLine

Key = tuple[CellIdentity, str, float]
"""Key of a row in all tables: cell, provenance and length of a trajectory."""


def key_of(row: Row) -> Key:
    """Return the key of a projection."""
    return row.identity, row.provenance, row.length.actions


def rows_by_key(answer: Answer) -> dict[Key, Row]:
    """Return the rows of an answer."""
    return {key_of(entry.row): entry.row for line in answer.lines for entry in line.entries}


def records(answer: Answer) -> dict[Key, dict[str, Any]]:
    """Return the fields of every row of the answer, all with the same keys."""
    modes = {key_of(mode.row): mode for mode in answer.modes}
    return {key: record | _mode(modes.get(key)) for line in answer.lines for key, record in _of_line(line)}


def _mode(ratio: ModeRatio | None) -> dict[str, Any]:
    """Return the ratio of a row by ``exec`` to the same workload by ``session``."""
    return {
        "session": ratio and ratio.session.identity.cell_id,
        "ratio_to_session": dict.fromkeys(Interval._fields) if ratio is None else ratio.ratio._asdict(),
        "verdict_to_session": ratio and ratio.verdict.kind,
    }


def _of_line(line: WorkLine) -> Iterator[tuple[Key, dict[str, Any]]]:
    ranked = line.ranked
    among, reference = {id(entry) for entry in ranked}, None if line.reference is None else line.at(line.reference)
    for entry in line.entries:
        against = None if entry.ratio is None or reference is None else reference.row
        record = _record(entry, against, ranked=id(entry) in among, cheapest=bool(ranked) and entry is ranked[0])
        yield key_of(entry.row), {"work": line.name, **record}


def _record(entry: Entry, against: Row | None, *, ranked: bool, cheapest: bool) -> dict[str, Any]:
    """``against``: the row of the denominator; None for the reference itself and for unranked rows."""
    return {
        "place": entry.place.name,
        "ranked": ranked,
        "cheapest": cheapest,
        "against": against and against.identity.cell_id,
        "ratio": dict.fromkeys(Interval._fields) if entry.ratio is None else entry.ratio._asdict(),
        "verdict": entry.verdict and entry.verdict.kind,
        "tie": None if entry.verdict is None else entry.verdict.kind == TIE,
    }
