"""A decision as plain data: full precision, null where the data do not support a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from costmodel import UNMEASURED_PROVENANCES, Assumption, Bill, Decision, InputEffect, Interval, Side, Turn
from taxtui.report.decision.memo import measurement
from taxtui.report.projected.record import record as row_record


def record(
    found: Decision, effects: Sequence[InputEffect], turns: Sequence[Turn], given: Sequence[Assumption]
) -> dict[str, Any]:
    """Amounts are of the whole run, in ``unit``."""
    return {
        "verdict": found.verdict,
        "unit": found.unit,
        "saving": found.saving._asdict(),
        "saving_at_worst": found.saving_at_worst and found.saving_at_worst._asdict(),
        "saving_at_best": found.saving_at_best and found.saving_at_best._asdict(),
        "from": _side(found.start, found.start_bill),
        "to": _side(found.goal, found.goal_bill),
        "unmeasured": [_effect(effect) for effect in effects],
        "turns": [turn._asdict() for turn in turns],
        "assumptions": [item._asdict() for item in given],
        "measure": [
            measurement(side) for side in (found.start, found.goal) if side.row.provenance in UNMEASURED_PROVENANCES
        ],
        "open_points": [point._asdict() for point in found.open_points],
        "doubts": [doubt._asdict() for doubt in found.doubts],
    }


def _effect(effect: InputEffect) -> dict[str, Any]:
    """A range with the savings at its ends; ``turns_at`` is null where the saving has one sign all over it."""
    item = effect.input
    return {
        "side": effect.side,
        "input": item.name,
        "unit": item.unit,
        **{end: getattr(item, end) for end in ("assumed", "best", "worst")},
        "labels": {end: item.label(getattr(item, end)) for end in ("assumed", "best", "worst")},
        "saving_at_best": _tried(effect.best),
        "saving_at_worst": _tried(effect.worst),
        "turns_at": effect.at,
        "sources": list(item.sources),
        "of_other_providers": item.of_others,
    }


def _tried(amount: float | None) -> float | None:
    return None if amount is None or math.isnan(amount) else amount


def _side(side: Side, own: Bill) -> dict[str, Any]:
    bill = {name: part._asdict() if isinstance(part, Interval) else part for name, part in own._asdict().items()}
    return {"name": side.name, "provenance": side.row.provenance, "bill": bill, "row": row_record(side.row)}
