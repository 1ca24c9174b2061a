"""A cell as it is thought to be somewhere else, or at another scale: one pool for the value, one for each end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, NamedTuple

from costmodel import flags
from costmodel.demand import Demand
from costmodel.pricing import Prices
from costmodel.results import Assumption, LevelLaw, Projection, Share
from costmodel.samples import Pool
from costmodel.uncertainty import Between, Interval


class Alternatives(NamedTuple):
    """What one row is computed from. Without ends it is a pool as it was recorded."""

    value: Pool
    demand: Demand
    prices: Prices | None
    ends: tuple[Pool, ...] = ()  # the least and the most of what was not measured
    assumptions: tuple[Assumption, ...] = ()
    flags: tuple[str, ...] = ()
    levels: LevelLaw | None = None
    at_least: bool = False  # nothing bounds it from above

    def told(self, row: Projection, ends: Sequence[Projection]) -> Projection:
        """The value's row, from the lowest limit of any to the highest, with what it rests on."""
        for flag in self.flags:
            if flag not in row.flags:
                row = replace(row, flags=flags.including(row.flags, flag))
        found = _across([replace(row, assumptions=self.assumptions, levels=self.levels), *ends])
        return without_upper_limits(found) if self.at_least else found  # type: ignore[no-any-return]


_KEPT: Final = ("identity", "length", "held_out", "flags", "evidence", "assumptions", "levels", "versus")
"""Fields of a row that do not depend on which of its pools was projected."""


def without_upper_limits(one: Any) -> Any:
    """A result whose amounts are at least what they are: every upper limit is None."""
    if is_dataclass(one) and not isinstance(one, type):
        parts = {each.name: getattr(one, each.name) for each in fields(one) if each.name not in _KEPT}
        return replace(one, **{name: without_upper_limits(part) for name, part in parts.items()})
    if isinstance(one, dict):
        return {key: without_upper_limits(part) for key, part in one.items()}
    if isinstance(one, Between):
        return None  # its upper end is one of the measured concurrency
    if not hasattr(one, "_fields"):
        return one
    opened = {name: without_upper_limits(getattr(one, name)) for name in one._fields}
    return one._replace(**opened | {name: None for name in ("high", "high_s") if name in opened})


def _across(ones: Sequence[Any]) -> Any:
    """The first of several results of one kind; what has limits with those of all."""
    first = ones[0]
    if len(ones) == 1 or any(one is None for one in ones):
        return first
    if is_dataclass(first) and not isinstance(first, type):
        parts = {one.name: [getattr(each, one.name) for each in ones] for one in fields(first) if one.name not in _KEPT}
        return replace(first, **{name: _across(each) for name, each in parts.items()})
    if isinstance(first, dict):
        return {key: _across([one.get(key) for one in ones]) for key, _ in first.items()}
    if not hasattr(first, "_fields"):
        return first
    if isinstance(first, Share):  # without limits it stays: a range of what was assumed is none of what was measured
        parts = {name: [getattr(one, name) for one in ones] for name in first._fields}
        return Share(**{name: each[0] if _unlimited(each[0]) else _across(each) for name, each in parts.items()})
    wider = {name: _across([getattr(one, name) for one in ones]) for name in first._fields}
    for low, high, value in (("low", "high", "value"), ("low_s", "high_s", "")):
        if low in wider:
            wider[low] = _end([_limit(one, low, value) for one in ones], min)
            wider[high] = _end([_limit(one, high, value) for one in ones], max)
    return first._replace(**wider)


def _unlimited(one: Interval | None) -> bool:
    return one is not None and one.low is None and one.high is None


def _limit(one: Any, limit: str, value: str) -> Any:
    """A limit; the value itself where the trials support none at all."""
    own = getattr(one, limit)
    none = value and getattr(one, "low", None) is None and getattr(one, "high", None) is None
    return getattr(one, value) if none else own


def _end(limits: Sequence[Any], furthest: Any) -> Any:
    return None if any(limit is None for limit in limits) else furthest(limits)
