"""A row as plain data for json and csv: full precision, nanoseconds, null where the data do not support a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from costmodel.percentiles import Percentile
from costmodel.uncertainty import Interval
from taxtui.report.measured.rows import NS_PER_HOUR, TAXES, Rank, Row, Tax
from taxtui.report.measured.tables import LATENCIES

_PARTS: Final = (
    *("create", "ready", "orchestration", "preload", "setup", "work", "dispatch", "unsplit", "harness"),
    *("ready_again", "queued", "think", "cleanup", "held"),
)


_COLUMNS: Final = {"dispatch": "dispatch_total"}
"""Part → its column, where one of the actions has its name."""


def record(row: Row, tables: Sequence[str]) -> dict[str, Any]:
    """The cell's identity, and what each of ``tables`` holds of it."""
    identity = row.identity
    found: dict[str, Any] = {
        "cell_id": identity.cell_id,
        **identity._asdict(),
        "provenance": row.cell.provenance,
        "recordings": row.cell.sources,
        "trials": len(row.cell.trials),
        "failures": row.failed,
        "failure_rate": row.failures._asdict(),
    }
    for table in tables:
        found |= {f"{name}_ns": _latency(row, name) for name in LATENCIES.get(table, ())}
    if "breakdown" in tables:
        found["mean_ns"] = {part: row.mean_ns(_COLUMNS.get(part, part)) for part in _PARTS}
    if "tax" in tables:
        found |= {"held_per_success_ns": row.held_ns, "work_per_success_ns": row.work_ns} | _tax(row.tax)
    return {**found, "flags": row.flags}


def _latency(row: Row, name: str) -> dict[str, Any]:
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
