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
"""Assumption of a row → unmeasured input, if the names differ."""


_KINDS: Final = {MEASURED_INPUT: "measured", STEP_MODEL_RULES: "rule"}


def without_ranges(side: Side, assumptions: Sequence[Assumption]) -> list[Assumption]:
    """Return the assumptions of a side's row, without the inputs that have a range."""
    names = set() if side.candidate is None else {item.name for item in side.candidate.inputs}
    return [item for item in assumptions if _INPUT_OF.get(item.name, item.name) not in names and item.name != "prices"]


def sources_of(decision: Decision, inputs: Sequence[Assumption]) -> Iterator[str]:
    """Yield every input without a range, with its source."""
    for side in (decision.start, decision.goal):
        if side.candidate is None and side.row.trials:
            yield f"measured: {side.name}, {side.row.trials:,} trials of {side.row.identity.tier} {side.row.length}"
        elif side.candidate is not None:
            pool = side.candidate.pool
            yield (
                f"borrowed for {side.name}: the commands, their time and the runner gap, measured on "
                f"{pool.identity.label} in {', '.join(pool.sources)}"
            )
            if side.candidate.provider.prices is not None:
                prices = side.candidate.provider.prices
                source = "; ".join(dict.fromkeys(item.cited for item in prices.sandboxes))
                yield f"published for {side.name}: prices, {prices.title} ({prices.date}): {source}"
    for item in inputs:
        kind = _KINDS.get(item.source, "borrowed" if item.source.startswith("unmeasured") else "given")
        yield f"{kind}: {item.name} {item.value}; {item.source}"
