"""A decision as plain data for JSON: full precision, null for unsupported numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from costmodel import UNMEASURED_PROVENANCES, Assumption, Bill, Decision, InputEffect, Side
from taxtui.report.decision.sections import doubts_of, measurement
from taxtui.report.formats.json_rows import plain
from taxtui.report.projected.record import record as row_record


def record(decision: Decision, effects: Sequence[InputEffect], inputs: Sequence[Assumption]) -> dict[str, Any]:
    """Return a decision; amounts are for the whole training run, in ``unit``."""
    sides = (decision.start, decision.goal)
    return {
        "verdict": decision.verdict,
        "unit": decision.unit,
        "saving": plain(decision.saving),
        "saving_at_worst": plain(decision.saving_at_worst),
        "saving_at_best": plain(decision.saving_at_best),
        "from": _side(decision.start, decision.start_bill),
        "to": _side(decision.goal, decision.goal_bill),
        "unmeasured": [_effect(effect, decision.goal.name) for effect in effects],
        "assumptions": plain(inputs),
        "measure": [measurement(side) for side in sides if side.row.provenance in UNMEASURED_PROVENANCES],
        "open_points": plain(decision.open_points),
        "doubts": plain(doubts_of(decision)),
    }


def _effect(effect: InputEffect, side: str) -> dict[str, Any]:
    """Return a range with the savings at its ends; ``turns_at`` is null without a threshold."""
    item = effect.input
    return {
        "side": side,
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


def _side(side: Side, costs: Bill) -> dict[str, Any]:
    return {"name": side.name, "provenance": side.row.provenance, "bill": plain(costs), "row": row_record(side.row)}
