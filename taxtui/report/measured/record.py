"""A row as plain data for json and csv: full precision, nanoseconds, null where the data do not support a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from costmodel import NS_PER_HOUR, Exposure, Interval, Modes, Percentile
from taxtui.report import variation
from taxtui.report.measured import laws
from taxtui.report.measured.rows import TAXES, MeasuredRow, Rank, Tax
from taxtui.report.measured.tables import LATENCIES, LAWS, do_about

_PARTS: Final = (
    *("create", "ready", "orchestration", "preload", "setup", "work", "contention", "waiting", "dispatch", "unsplit"),
    *("wrapper", "harness", "ready_again", "queued", "think", "verify", "cleanup", "held", "start_delay"),
)


_COLUMNS: Final = {"dispatch": "dispatch_total", "wrapper": "wrapper_total"}
"""Part → its column, where one of the actions has its name."""


def record(row: MeasuredRow, tables: Sequence[str]) -> dict[str, Any]:
    """The cell's identity, and what each of ``tables`` holds of it."""
    identity = row.identity
    result: dict[str, Any] = {
        "cell_id": identity.cell_id,
        **identity._asdict(),
        **row.length.record(),
        "provenance": row.cell.provenance,
        "recordings": row.cell.sources,
        "trials": len(row.cell.trials),
        "failures": row.failed,
        "runs": variation.record(row.basis),
        "failure_rate": row.failures._asdict(),
    }
    for table in tables:
        result |= {f"{name}_ns": _latency(row, name) for name in LATENCIES.get(table, ())}
    if "breakdown" in tables:
        result["mean_ns"] = {part: row.mean_ns(_COLUMNS.get(part, part)) for part in _PARTS}
    if LAWS in tables:
        result |= laws.record(row)
    if "tax" in tables:
        result |= {"held_per_success_ns": row.held_ns, "work_per_success_ns": row.work_ns} | _tax(row.tax)
    if "completion" in tables:
        stable = row.stability
        result["in_time"] = stable._asdict() | {"modes": _fields(Modes, stable.modes)}
    return {**result, "bad_seconds": _exposure(row.exposure), "flags": row.flags, "do": do_about(row)}


def _exposure(found: Exposure | None) -> dict[str, Any]:
    """Return the effect on the mean trajectory of seconds in which the measuring process was late or busy."""
    return {
        "exposed_trials": found.exposed if found else 0,
        "clean_trajectory_ns": found and found.clean_ns.value,
        "difference_ns": found and found.difference_ns,
        "median_share": found.share if found else 0.0,
    }


def _latency(row: MeasuredRow, name: str) -> dict[str, Any]:
    summary = row.summary(name)
    return {
        "n": summary.n if summary else 0,
        "p50": _fields(Percentile, summary and summary.p50),
        "p95": _fields(Percentile, summary and summary.p95),
        "p99": _fields(Percentile, summary and summary.p99),
        "mean": _fields(Interval, summary and summary.mean),
        "outliers": summary.outliers if summary else 0,
        "rank": _fields(Rank, row.rank(name)),
    }


def _tax(tax: Tax | None) -> dict[str, Any]:
    return {
        "tax_per_success_ns": _fields(Interval, tax and tax.total),
        "tax_share_of_held": tax and tax.share,
        "tax_by_cause_ns": {cause: tax and tax.causes[cause] for cause in TAXES},
        "tax_worker_hours_per_million": tax and tax.total.value * 1e6 / NS_PER_HOUR,
    }


def _fields(kind: type[Any], value: Any) -> dict[str, Any]:
    """A named tuple by its fields, each of them null where there is none: rows have the same columns."""
    return dict.fromkeys(kind._fields) if value is None else dict(value._asdict())
