"""A comparison as plain data for JSON and CSV."""

from __future__ import annotations

from typing import Any

from costmodel import FAILURE_RATE, ComparedSide, Comparison, Interval, Pool


def record(comparison: Comparison) -> dict[str, Any]:
    """Return one comparison; durations in ns, null if unknown."""
    identity = comparison.after.identity
    unit = "share" if comparison.metric.name == FAILURE_RATE else "ns"

    def side(pool: Pool, compared: ComparedSide) -> dict[str, Any]:
        return {
            "substrate": pool.identity.label,
            "recordings": pool.sources,
            "n": compared.values,
            unit: _limits(compared.at),
        }

    return {
        "cell_id": identity.cell_id,
        **identity._asdict(),
        "provenance": comparison.after.provenance,
        "metric": comparison.metric.name,
        "limit": comparison.metric.limit,
        "before": side(comparison.before, comparison.then),
        "after": side(comparison.after, comparison.now),
        "change": _limits(comparison.change),
        "runs": [basis._asdict() for basis in comparison.bases],
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "beyond_limit": comparison.beyond,
        "needs_repetitions": comparison.needs,
    }


def _limits(interval: Interval | None) -> dict[str, float | None]:
    return dict.fromkeys(Interval._fields) if interval is None else interval._asdict()
