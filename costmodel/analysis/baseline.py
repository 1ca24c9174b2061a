"""Compare rows: command time with a reference, and hours with a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from costmodel.errors import TrainingRunError
from costmodel.projection import warnings
from costmodel.projection.row import Row, Versus
from costmodel.recording.trial import CellIdentity
from costmodel.statistics.intervals import Interval, difference
from costmodel.statistics.repetitions import Assumed, Estimate, assumed
from costmodel.statistics.verdict import UNKNOWN, Difference, Finding, judge, ratio

WORK_FIELDS: Final = (
    *("tier", "tier_digest", "mode", "concurrency", "arrival", "think", "acquire", "cpu_milli", "memory_mib"),
)
"""Fields of a cell's identity that are equal for the same workload, besides the length."""
_LIKENESS: Final = ("mode", "environment", "concurrency", "arrival", "think", "acquire", "cpu_milli", "memory_mib")
"""Fields that make two rows similar, the most important first."""


def matches_spec(identity: CellIdentity, spec: str) -> bool:
    """Whether ``SUBSTRATE[:key=value,…]`` means this cell; a value will do for an option, as in docker:runsc."""
    name, _, options = spec.partition(":")
    parts = identity.variant.split(",")
    options_of_cell = {text for part in parts for text in (part, part.partition("=")[2]) if text}
    wanted = [option for option in options.split(",") if option]
    return identity.substrate == name and all(options_of_cell & {option, option.partition("=")[2]} for option in wanted)


def matching(rows: Sequence[Row], spec: str) -> list[Row]:
    """Return the rows of ``SUBSTRATE[:key=value,…]``, the plain variant first.

    Raises:
        TrainingRunError: none is.
    """
    matches = [row for row in rows if matches_spec(row.identity, spec)]
    if not matches:
        labels = ", ".join(dict.fromkeys(row.identity.label for row in rows))
        raise TrainingRunError(f"there is no row for {spec!r}; the recordings hold {labels}")
    return sorted(matches, key=lambda row: bool(row.identity.variant))


def peer(row: Row, candidates: Sequence[Row]) -> Row | None:
    """Return the most similar candidate of the same tier and length."""

    def likeness(candidate: Row) -> list[bool]:
        return [getattr(row.identity, field) == getattr(candidate.identity, field) for field in _LIKENESS]

    work = row.identity.tier, row.identity.tier_digest, row.length
    same_work = [side for side in candidates if (side.identity.tier, side.identity.tier_digest, side.length) == work]
    return max(same_work, key=likeness, default=None)


def with_full_speed(rows: Sequence[Row], spec: str) -> list[Row]:
    """Split each row's command time into the reference's time and the slowdown."""
    works_ns = {id(row): row.evidence.work_per_success_ns for row in rows if row.evidence}
    candidates = [row for row in matching(rows, spec) if works_ns.get(id(row))]
    result = []
    for row in rows:
        reference, cause, work_ns = peer(row, candidates), row.by_cause_worker_hours, works_ns.get(id(row))
        reference_ns = works_ns.get(id(reference))
        if reference and cause and cause.work is not None and work_ns is not None and reference_ns is not None:
            work = cause.work * float(reference_ns / work_ns) if work_ns else 0.0
            cause = cause._replace(slowdown=cause.work - work, work=work)
            row = _doubting(replace(row, by_cause_worker_hours=cause), reference)
        result.append(row)
    return result


def with_baseline(rows: Sequence[Row], spec: str, *, required: bool = True, run_sd: float | None = None) -> list[Row]:
    """Compare every row with its peer among the baseline's rows; measured rows are compared with measured rows only.

    A disturbed row is compared with none. ``run_sd`` is the field of ``TrainingRun``.

    Raises:
        TrainingRunError: the baseline is unknown, and ``required``.
    """
    try:
        candidates = matching([row for row in rows if row.worker_hours], spec)
    except TrainingRunError:
        if required:
            raise
        return list(rows)
    result = []
    for row in rows:
        baseline = peer(row, [candidate for candidate in candidates if candidate.provenance == row.provenance])
        disturbed = any(warnings.DISTURBED in side.flags for side in (row, baseline or row))
        if row.worker_hours is None or baseline is row or disturbed:
            result.append(row)
        elif baseline is None:
            result.append(row if peer(row, candidates) is None else row.flagged(warnings.PROVENANCE))
        else:
            delta, verdict = judge_rows(row, baseline, row.worker_hours, baseline.worker_hours, run_sd)
            versus = Versus(baseline.identity.cell_id, baseline.label, delta, verdict)
            result.append(_doubting(replace(row, versus=versus), baseline))
    return result


def _doubting(row: Row, reference: Row) -> Row:
    """Return the row, flagged if it and the reference were measured in different environments."""
    same = row.identity.environment == reference.identity.environment
    return row if same else row.flagged(warnings.ENVIRONMENT)


def judge_rows(
    row: Row, reference: Row, amount: Interval | None, reference_amount: Interval | None, run_sd: float | None
) -> Difference:
    """Judge the difference of an amount proportional to occupied time per success."""
    assert amount is not None
    assert reference_amount is not None
    sides = _estimates(row, reference, amount, reference_amount, run_sd)
    return Difference(difference(amount, reference_amount), Finding(UNKNOWN)) if sides is None else judge(*sides)


def times(
    row: Row, reference: Row, amount: Interval, reference_amount: Interval, run_sd: float | None
) -> Interval | None:
    """Return the ratio of two amounts, with an interval consistent with ``judge_rows``."""
    sides = _estimates(row, reference, amount, reference_amount, run_sd)
    if sides is None:
        return Interval(amount.value / reference_amount.value) if reference_amount.value > 0 else None
    return ratio(*sides)


def _estimates(
    row: Row, reference: Row, amount: Interval, reference_amount: Interval, run_sd: float | None
) -> tuple[Estimate, Estimate, Assumed] | None:
    """Return both estimates and the larger assumed spread; None where a row is published, or "at least"."""
    if row.evidence is None or reference.evidence is None or amount.at_least or reference_amount.at_least:
        return None
    held, reference_held = (
        estimate.scaled(interval.value / estimate.value) if estimate.value else estimate
        for estimate, interval in ((row.evidence.held, amount), (reference.evidence.held, reference_amount))
    )
    spreads = (assumed(side.identity.substrate, run_sd) for side in (row, reference))
    return held, reference_held, max(spreads, key=lambda spread: spread.sd)
