"""The order of an answer's lines, and of the rows of other tables by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from costmodel import Answer, CellIdentity, Row, WorkLine
from taxtui.options.rows import BY_SUBSTRATE, SORTS

R = TypeVar("R")

Key = tuple[CellIdentity, str, float]
"""Key of a row in any table: its cell, its provenance, and the length of its trajectories."""


def key_of(row: Row) -> Key:
    """Return the key of a projection."""
    return row.identity, row.provenance, row.length.actions


def tax_share(row: Row) -> float | None:
    """Return the share of worker-hours that is tax; None where it is unknown."""
    tax, whole = row.tax_worker_hours, row.worker_hours
    return tax.value / whole.value if tax and whole and whole.value else None


def _least(line: WorkLine) -> float:
    return min((entry.amount.value for entry in line.entries if entry.amount), default=math.inf)


def _farthest(line: WorkLine) -> float:
    return -max((entry.ratio.value for entry in line.entries if entry.ratio), default=0.0)


def _most_tax(line: WorkLine) -> float:
    return -max((tax_share(entry.row) or 0.0 for entry in line.entries), default=0.0)


_KEYS: Final[dict[str, Callable[[WorkLine], Any]]] = dict(
    zip(SORTS, (lambda line: line.work, _least, _farthest, _most_tax), strict=True)
)


def sorted_by(found: Answer, sort: str | None) -> Answer:
    """The answer with its lines in this order; lines that are equal in it stay by work."""
    return found if sort is None else found._replace(lines=tuple(sorted(found.lines, key=_KEYS[sort])))


def arranged(rows: Sequence[R], found: Answer, key: Callable[[R], Key], group: str | None) -> list[R]:
    """The rows of another table in the order of the answer; those that it does not hold last, as they are."""
    placed = [
        (entry.place, key_of(entry.row))
        for line in found.lines
        for entry in line.entries
        if entry.place in found.places  # a baseline may be in no column
    ]
    if group == BY_SUBSTRATE:
        placed.sort(key=lambda item: found.places.index(item[0]))
    places = {members: number for number, (_, members) in enumerate(placed)}
    return sorted(rows, key=lambda row: places.get(key(row), len(places)))
