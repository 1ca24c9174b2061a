"""Order of an answer's lines, and of the rows of other tables in the same order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from costmodel import Answer, CellIdentity, Row, WorkLine
from taxtui.options.rows import BY_SUBSTRATE, SORTS

R = TypeVar("R")

Key = tuple[CellIdentity, str, float]
"""Key of a row in all tables: cell, provenance and length of a trajectory."""


def key_of(row: Row) -> Key:
    """Return the key of a projection."""
    return row.identity, row.provenance, row.length.actions


def tax_share(row: Row) -> float | None:
    """Return the tax as a share of the worker-hours; None if unknown."""
    tax, whole = row.tax_worker_hours, row.worker_hours
    return tax.value / whole.value if tax and whole and whole.value else None


def _smallest_amount(line: WorkLine) -> float:
    return min((entry.amount.value for entry in line.entries if entry.amount), default=math.inf)


def _largest_ratio(line: WorkLine) -> float:
    return -max((entry.ratio.value for entry in line.entries if entry.ratio), default=0.0)


def _largest_tax(line: WorkLine) -> float:
    return -max((tax_share(entry.row) or 0.0 for entry in line.entries), default=0.0)


_KEYS: Final[dict[str, Callable[[WorkLine], Any]]] = dict(
    zip(SORTS, (lambda line: line.work, _smallest_amount, _largest_ratio, _largest_tax), strict=True)
)


def sorted_by(answer: Answer, sort: str | None) -> Answer:
    """Return the answer with its lines in this order; equal lines stay in the order of their workloads."""
    return answer if sort is None else answer._replace(lines=tuple(sorted(answer.lines, key=_KEYS[sort])))


def arranged(rows: Sequence[R], answer: Answer, key: Callable[[R], Key], group: str | None) -> list[R]:
    """Return the rows of another table in the order of the answer; rows outside of the answer are last."""
    placed = [
        (entry.place, key_of(entry.row))
        for line in answer.lines
        for entry in line.entries
        if entry.place in answer.places  # a baseline may be in no column
    ]
    if group == BY_SUBSTRATE:
        placed.sort(key=lambda item: answer.places.index(item[0]))
    places = {members: number for number, (_, members) in enumerate(placed)}
    return sorted(rows, key=lambda row: places.get(key(row), len(places)))
