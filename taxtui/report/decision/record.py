"""A decision as plain data: full precision, null where the data do not support a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costmodel.analysis.decision import UNMEASURED, Bill, Decision, Side
from costmodel.analysis.thresholds import Turn
from costmodel.statistics.intervals import Interval
from costmodel.workload.scenario_range import Assumption
from taxtui.report.decision.memo import measurement
from taxtui.report.projected.record import record as row_record


def record(found: Decision, turns: Sequence[Turn], given: Sequence[Assumption]) -> dict[str, Any]:
    """Amounts are of the whole run, in ``unit``."""
    return {
        "verdict": found.verdict,
        "unit": found.unit,
        "saving": found.saving._asdict(),
        "from": _side(found.start, found.start_bill),
        "to": _side(found.goal, found.goal_bill),
        "turns": [turn._asdict() for turn in turns],
        "assumptions": [one._asdict() for one in given],
        "measure": [measurement(side) for side in (found.start, found.goal) if side.row.provenance in UNMEASURED],
        "open_points": [point._asdict() for point in found.open_points],
        "doubts": [doubt._asdict() for doubt in found.doubts],
    }


def _side(side: Side, own: Bill) -> dict[str, Any]:
    bill = {name: part._asdict() if isinstance(part, Interval) else part for name, part in own._asdict().items()}
    return {"name": side.name, "provenance": side.row.provenance, "bill": bill, "row": row_record(side.row)}
