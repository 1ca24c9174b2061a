"""The source of each input of a decision: measured, published, borrowed, given, or a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from costmodel import MEASURED_INPUT, STEP_MODEL_RULES, Assumption, Decision, Side

_INPUT_OF: Final = {
    "failures": "failure_rate",
    "image pulls and builds": "image",
    "work speed": "work_speed",
    "quota": "limits",
    "create_rate": "limits",
    "create_burst": "limits",
}
"""The unmeasured input that an assumption of a row is about, where its name is another."""


def without_ranges(side: Side, assumptions: Sequence[Assumption]) -> list[Assumption]:
    """The assumptions of a side's row that no range of an unmeasured input replaces."""
    ranged = set() if side.candidate is None else {item.name for item in side.candidate.inputs}
    return [item for item in assumptions if _INPUT_OF.get(item.name, item.name) not in ranged and item.name != "prices"]


def rests_on(found: Decision, given: Sequence[Assumption]) -> Iterator[str]:
    """Every input that is not in a table of ranges, grouped by where it comes from."""
    for side in (found.start, found.goal):
        if side.candidate is None and side.row.trials:
            yield f"measured: {side.name}, {side.row.trials:,} trials of {side.row.identity.tier} {side.row.length}"
        elif side.candidate is not None:
            pool = side.candidate.pool
            yield (
                f"borrowed for {side.name}: the commands, their time and the harness, as they were on "
                f"{pool.identity.label} in {', '.join(pool.sources)}"
            )
            if side.candidate.provider.prices is not None:
                prices = side.candidate.provider.prices
                source = "; ".join(dict.fromkeys(item.source for item in prices.sandboxes))
                yield f"published for {side.name}: prices, {prices.title} ({prices.date}): {source}"
    for item in given:
        yield f"{_kind(item)}: {item.name} {item.value}; {item.source}"


def _kind(one: Assumption) -> str:
    if one.source == MEASURED_INPUT:
        return "measured"
    if one.source == STEP_MODEL_RULES:
        return "rule"
    return "borrowed" if one.source.startswith("unmeasured") else "given"
