"""A projection as plain data for JSON and CSV: full precision, null for unsupported numbers."""

from __future__ import annotations

from typing import Any

from costmodel import FIXED_LENGTH, MeasuredLevels, Percentile, Row
from taxtui.report.formats.json_rows import plain
from taxtui.report.marks import MOST
from taxtui.report.words import DO


def record(row: Row) -> dict[str, Any]:
    """Return one row; None is unknown."""
    identity = row.identity
    return {
        "cell_id": identity.cell_id,
        "substrate": identity.substrate,
        "variant": identity.variant,
        "label": row.label,
        "tier": identity.tier,
        "actions": row.length.actions,
        **row.length.record(),
        "recorded_actions": identity.actions if identity.length == FIXED_LENGTH else None,
        "mode": identity.mode,
        "concurrency": identity.concurrency,
        "arrival": identity.arrival,
        "levels": _levels(row.levels),
        "environment": identity.environment,
        "recordings": list(row.sources),
        "trials": row.trials,
        "failures": row.failures,
        "provenance": row.provenance,
        "trajectory_s": _trajectory(row),
        "runs": plain(row.evidence and row.evidence.basis),
        "held_per_success_s": row.held_per_success_s.value if row.held_per_success_s else None,
        "think_s": row.think_s,
        "cleanup_share_left_out": row.cleanup_share_left_out,
        "attempts": row.attempts,
        "delivered": row.delivered,
        "worker_hours": plain(row.worker_hours),
        "tax_worker_hours": plain(row.tax_worker_hours),
        "tax_between_worker_hours": plain(row.tax_between_worker_hours),
        "by_cause": row.by_cause_worker_hours and row.by_cause_worker_hours.as_dict(),
        "wall_clock_hours": plain(row.wall_clock_hours),
        "cost": _cost(row),
        "vs_baseline": _versus(row),
        "steps": _steps(row),
        "gpu": plain(row.gpu) or None,
        "attribution": _attribution(row),
        "warm_pool": row.warm_pool and dict(zip(("hit", "idle", "rule"), row.warm_pool, strict=True)),
        "effective_workers": row.evidence.effective_workers if row.evidence else None,
        "flags": list(row.flags),
        "do": [f"{flag}: {DO[flag]}" for flag in row.flags[:MOST]],
    }


def _levels(levels: MeasuredLevels | None) -> dict[str, Any] | None:
    """Return the levels of concurrency behind a row; None for a single level."""
    return levels and levels._asdict() | {"levels": {str(at_a_time): held_s for at_a_time, held_s in levels.levels}}


def _trajectory(row: Row) -> dict[str, float | None]:
    latency = row.trajectory_s
    mean: tuple[float | None, ...] = latency.mean if latency else (None, None, None)
    result = dict(zip(("mean", "low", "high"), mean, strict=True))
    for name in ("p50", "p95", "p99"):
        percentile: Percentile | None = getattr(latency, name, None)
        for key, field in ((name, "value"), (f"{name}_low", "low"), (f"{name}_high", "high")):
            result[key] = getattr(percentile, field, None)
        result[f"{name}_needs_trials"] = percentile.needs if percentile else None
    return result


def _cost(row: Row) -> dict[str, Any] | None:
    return row.cost and {"prices" if key == "sheet" else key: plain(part) for key, part in row.cost._asdict().items()}


def _versus(row: Row) -> dict[str, Any] | None:
    if row.versus is None:
        return None
    value, low, high = row.versus.worker_hours
    verdict = row.versus.verdict
    amounts = {"worker_hours": value, "low": low, "high": high}
    return {**amounts, "tie": verdict.tie, "verdict": verdict.kind, "baseline": row.versus.baseline}


def _steps(row: Row) -> dict[str, Any] | None:
    if row.steps is None:
        return None
    fields = row.steps._asdict()
    step = fields.pop("step")
    renamed = {f"step_{key}": fields.pop(key) for key in ("low_s", "high_s", "needs_trials")}
    return {**fields, "step_s": step.value_ns / 1e9, "step_error_s": step.error_ns / 1e9, **renamed}


def _attribution(row: Row) -> dict[str, Any] | None:
    if row.attribution is None:
        return None
    sources = {item.name: {"value": item.value, "source": item.source} for item in row.attribution.assumptions}
    return {**plain(row.attribution), "assumptions": sources}
