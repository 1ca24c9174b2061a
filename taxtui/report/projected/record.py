"""A projection as plain data for JSON and CSV: full precision, null for unsupported numbers."""

from __future__ import annotations

from typing import Any

from costmodel import FIXED_LENGTH, Attribution, Interval, LevelLaw, Percentile, Row, Share, warnings
from taxtui.report import variation


def record(row: Row) -> dict[str, Any]:
    """Return one row; None is unknown."""
    identity = row.identity
    return {
        "cell_id": identity.cell_id,
        "substrate": identity.substrate,
        "variant": identity.variant,
        "label": row.label,
        "tier": identity.tier,
        "actions": row.actions,
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
        "runs": variation.record(row.evidence.basis) if row.evidence else None,
        "held_per_success_s": row.held_per_success_s.value if row.held_per_success_s else None,
        "think_s": row.think_s,
        "cleanup_share_left_out": row.cleanup_share_left_out,
        "attempts": row.attempts,
        "delivered": row.delivered,
        "worker_hours": _interval(row.worker_hours),
        "tax_worker_hours": _interval(row.tax_worker_hours),
        "tax_between_worker_hours": row.tax_between_worker_hours and row.tax_between_worker_hours._asdict(),
        "by_cause": row.by_cause_worker_hours and row.by_cause_worker_hours.as_dict(),
        "wall_clock_hours": row.wall_clock_hours._asdict() if row.wall_clock_hours else None,
        "cost": _cost(row),
        "vs_baseline": _versus(row),
        "steps": _steps(row),
        "gpu": {policy: stall._asdict() for policy, stall in row.gpu.items()} if row.gpu else None,
        "attribution": _attribution(row.attribution),
        "warm_pool": _warm_pool(row),
        "effective_workers": row.evidence.effective_workers if row.evidence else None,
        "flags": list(row.flags),
        "do": [f"{flag}: {warnings.DO[flag]}" for flag in row.flags[: warnings.MOST]],
    }


def _interval(interval: Interval | None) -> dict[str, float | None] | None:
    return interval._asdict() if interval else None


def _levels(levels: LevelLaw | None) -> dict[str, Any] | None:
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
    if row.cost is None:
        return None
    cost = row.cost
    return {
        "total_usd": cost.total_usd,
        "sandbox_usd": _interval(cost.sandbox_usd),
        "idle_pool_usd": cost.idle_pool_usd,
        "worker_usd": cost.worker_usd,
        "usd_per_sandbox_hour": cost.usd_per_sandbox_hour,
        "billed_ratio": cost.billed_ratio,
        "prices": cost.sheet,
    }


def _versus(row: Row) -> dict[str, Any] | None:
    if row.versus is None:
        return None
    delta = row.versus.worker_hours
    return {
        "worker_hours": delta.value,
        "low": delta.low,
        "high": delta.high,
        "tie": row.versus.verdict.tie,
        "verdict": row.versus.verdict.kind,
        "baseline": row.versus.baseline,
    }


def _steps(row: Row) -> dict[str, Any] | None:
    if row.steps is None:
        return None
    steps = row.steps
    return {
        "steps": steps.steps,
        "batch": steps.batch,
        "launched": steps.launched,
        "step_s": steps.step.value_ns / 1e9,
        "step_error_s": steps.step.error_ns / 1e9,
        "step_low_s": steps.low_s,
        "step_high_s": steps.high_s,
        "step_needs_trials": steps.needs_trials,
        "idle_worker_hours": steps.idle_worker_hours,
        "wasted_worker_hours": steps.wasted_worker_hours,
    }


def _attribution(attribution: Attribution | None) -> dict[str, Any] | None:
    if attribution is None:
        return None
    return {
        "sandbox": _share(attribution.sandbox),
        "causes": {cause: share and _share(share) for cause, share in attribution.causes.items()},
        "interaction": _share(attribution.interaction),
        "run": _share(attribution.run),
        "waiting": attribution.waiting and attribution.waiting._asdict(),
        "usd_per_critical_second": attribution.usd_per_critical_second,
        "assumptions": {
            assumption.name: {"value": assumption.value, "source": assumption.source}
            for assumption in attribution.assumptions
        },
        "steps": attribution.steps,
        "simulated_steps": attribution.simulated_steps,
        "replicates": attribution.replicates,
        "error_s": attribution.error_s,
    }


def _share(share: Share) -> dict[str, Any]:
    return {unit: _interval(amount) for unit, amount in share._asdict().items()}


def _warm_pool(row: Row) -> dict[str, Any] | None:
    if row.warm_pool is None:
        return None
    return {"hit": row.warm_pool.hit, "idle": row.warm_pool.idle_sandboxes, "rule": row.warm_pool.rule}
