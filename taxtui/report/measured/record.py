"""A measured row as plain data for JSON and CSV: full precision, nanoseconds, null for unsupported numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from costmodel import NS_PER_HOUR, NS_PER_S, Exposure, Interval, Percentile, Prices, Row
from taxtui.report.formats.json_rows import plain
from taxtui.report.measured import distributions, failures, overview
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.measured.sections import DISTRIBUTIONS, LATENCIES, do_about
from taxtui.report.words import TAXES

_PARTS: Final = (
    *("create", "ready", "orchestration", "preload", "setup", "work", "contention", "waiting", "dispatch", "unsplit"),
    *("wrapper", "harness", "ready_again", "queued", "think", "verify", "cleanup", "held", "start_delay"),
)


def record(
    row: MeasuredRow, tables: Sequence[str], projection: Row | None = None, prices: Prices | None = None
) -> dict[str, Any]:
    """Return the identity of a cell and its values in ``tables``; ``projection``: of one trajectory, for the tax."""
    identity = row.identity
    result: dict[str, Any] = {
        "cell_id": identity.cell_id,
        **identity._asdict(),
        **row.length.record(),
        "provenance": row.cell.provenance,
        "recordings": row.cell.sources,
        "trials": len(row.cell.trials),
        "failures": row.failed,
        "runs": plain(row.basis),
        "failure_rate": row.failures._asdict(),
    }
    for table in tables:
        result |= {f"{name}_ns": _latency(row, name) for name in LATENCIES.get(table, ())}
    if "breakdown" in tables:
        result["mean_ns"] = {part: row.part_ns(part) for part in _PARTS}
    if DISTRIBUTIONS in tables:
        result |= distributions.record(row)
    if failures.FAILURES in tables:
        result |= failures.record(row)
    if overview.SUMMARY in tables:
        result |= overview.record(row, prices)
    if "tax" in tables:
        result |= _tax(projection)
    return {**result, "bad_seconds": _exposure(row.exposure), "flags": row.flags, "do": do_about(row)}


def _exposure(exposure: Exposure | None) -> dict[str, Any]:
    return {
        "exposed_trials": exposure.exposed if exposure else 0,
        "clean_trajectory_ns": exposure and exposure.clean_ns.value,
        "difference_ns": exposure and exposure.difference_ns,
        "median_share": exposure.share if exposure else 0.0,
    }


def _latency(row: MeasuredRow, name: str) -> dict[str, Any]:
    summary = row.summary(name)
    return {
        "n": summary.n if summary else 0,
        "p50": _fields(Percentile, summary and summary.p50),
        "p95": _fields(Percentile, summary and summary.p95),
        "p99": _fields(Percentile, summary and summary.p99),
        "mean": _fields(Interval, summary and summary.mean),
    }


def _tax(row: Row | None) -> dict[str, Any]:
    """Return the occupied time and the tax of a delivered trajectory by cause; None if unknown."""
    causes, tax = (row.by_cause_worker_hours, row.tax_worker_hours) if row else (None, None)
    held_s = row.held_per_success_s if row else None
    parts = {cause: getattr(causes, cause, None) for cause in ("work", *TAXES)}
    ns = {cause: None if hours is None else hours * NS_PER_HOUR for cause, hours in parts.items()}
    return {
        "held_per_success_ns": held_s and held_s.value * NS_PER_S,
        "work_per_success_ns": ns.pop("work"),
        "tax_per_success_ns": _fields(Interval, tax and tax.times(NS_PER_HOUR)),
        "tax_share_of_held": tax and held_s and tax.value * NS_PER_HOUR / (held_s.value * NS_PER_S),
        "tax_by_cause_ns": ns,
        "tax_worker_hours_per_million": tax and tax.value * 1e6,
    }


def _fields(kind: type[Any], value: Any) -> dict[str, Any]:
    """Return the fields of a named tuple, all None without a value, so that all rows have equal columns."""
    return dict.fromkeys(kind._fields) if value is None else dict(value._asdict())
