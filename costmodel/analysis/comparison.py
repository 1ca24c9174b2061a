"""Compare two sets of recordings: each metric of each cell, before and after.

::

    import costmodel

    result = costmodel.compare([costmodel.load("before.msgpack")], [costmodel.load("after.msgpack")])
    [(row.metric.name, row.change, row.verdict) for row in result.comparisons]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import Final, NamedTuple

from costmodel.analysis.compared_metrics import (
    DEFAULT_METRICS,
    FAILURE_RATE,
    METRIC_LIMIT,
    ComparedSide,
    Metric,
    change_of,
    parse_metric,
)
from costmodel.errors import TrainingRunError
from costmodel.recording.reader import Recording
from costmodel.recording.trial import CellIdentity
from costmodel.statistics.intervals import LEVEL, Interval, student_t
from costmodel.statistics.repetitions import NORMAL, Basis
from costmodel.statistics.verdict import repetitions_needed
from costmodel.workload.pool import Pool, pools

BETTER: Final = "better"
WORSE: Final = "worse"
NO_DIFFERENCE: Final = "no difference"
INCONCLUSIVE: Final = "inconclusive"
COMPARISON_VERDICTS: Final = (WORSE, INCONCLUSIVE, BETTER, NO_DIFFERENCE)
"""Every verdict, in the order of a table."""

DISTURBED: Final = "disturbed: measure again on an idle machine"
TOO_FEW: Final = "too few independent values for an interval"

FALSE_ALARMS: Final = 1 - LEVEL
"""Largest share of checks of two equal sides with a metric beyond its limit."""

SURROUNDINGS: Final = ("environment", "substrate_version", "image")
"""Fields of a cell's identity that may differ between the sides, possibly as the judged change."""


class Comparison(NamedTuple):
    """A metric of a cell, before and after."""

    before: Pool
    after: Pool
    metric: Metric
    then: ComparedSide
    now: ComparedSide
    change: Interval | None  # relative; for ``failure_rate`` the difference of the two shares
    verdict: str  # of ``COMPARISON_VERDICTS``
    reason: str = ""  # reason of INCONCLUSIVE, or of ``by_chance``
    bases: tuple[Basis, ...] = ()  # source of the between-repetition part of the interval
    needs: int | None = None  # repetitions per side for a change of the limit; None: none needed, or unknown
    by_chance: bool = False  # worse, but the metrics are so many that chance may explain the change

    @property
    def repetitions(self) -> tuple[int, int]:
        """Repetitions before and after."""
        return len(self.before.runs), len(self.after.runs)

    @property
    def measured(self) -> bool:
        """Whether these repetitions show how much repetitions differ; else an sd is assumed."""
        return any(basis.measured for basis in self.bases)

    @property
    def beyond(self) -> bool | None:
        """Whether the metric is worse by more than its limit. None: unknown.

        True where the metric is worse, not ``by_chance``, and its change is above the limit. False where the whole
        interval is at or below the limit.
        """
        above = self.change is not None and self.change.value > self.metric.limit
        if self.verdict == WORSE and above and not self.by_chance:
            return True
        high = None if self.change is None else self.change.high
        within = self.verdict == NO_DIFFERENCE or (high is not None and high <= self.metric.limit)
        return False if within else None


class Comparisons(NamedTuple):
    """All comparisons, and cells without a partner."""

    comparisons: list[Comparison]
    only_before: list[Pool]
    only_after: list[Pool]
    differing: tuple[str, ...]  # fields of ``SURROUNDINGS`` that differ between the sides

    @property
    def beyond(self) -> bool | None:
        """True where any metric is beyond its limit; else None where any is unknown; else False."""
        states = {comparison.beyond for comparison in self.comparisons}
        return True if True in states else None if None in states else False


def planned(identity: CellIdentity) -> CellIdentity:
    """Return the identity without measured fields (``SURROUNDINGS``)."""
    return identity._replace(environment="", substrate_version="", image="")


def compare(
    before: Recording | Sequence[Recording],
    after: Recording | Sequence[Recording],
    metrics: Sequence[Metric] | None = None,
    run_sd: float | None = None,
    *,
    wanted: Callable[[CellIdentity], bool] | None = None,
) -> Comparisons:
    """Compare each metric of each cell of ``after`` with the same cell of ``before``.

    Cells pair where their plan is equal; machine and image may differ. Trials of equal cells of a side are pooled.
    Measured cells pair with measured cells only. ``metrics``: by default ``DEFAULT_METRICS``. ``run_sd`` is the field
    of ``TrainingRun``; ``wanted`` selects cells.

    Raises:
        TrainingRunError: the sides share no cell, or share a run.
        SourceError: a side has a run twice.
    """
    before, after = ([side] if isinstance(side, Recording) else side for side in (before, after))
    shared = {source.run_id: source.name for source in before}
    for source in after:
        if source.run_id in shared:
            files = f"{source.name} and {shared[source.run_id]}"
            raise TrainingRunError(f"{files} hold the same run: against itself it always passes; give another")
    then, now = (
        [pool for pool in pools(side, planned) if pool.trials and (wanted is None or wanted(pool.identity))]
        for side in (before, after)
    )
    partners = {(pool.identity, pool.provenance): pool for pool in then}
    pairs = [(partners[key], pool) for pool in now if (key := (pool.identity, pool.provenance)) in partners]
    if not pairs:
        names = [", ".join(source.name for source in side) for side in (before, after)]
        raise TrainingRunError(f"{names[1]} and {names[0]} share no cell: record the same scenario on both sides")
    chosen = [parse_metric(name) for name in DEFAULT_METRICS] if metrics is None else metrics
    comparisons = _together([_compared(*pair, metric, run_sd) for pair in pairs for metric in chosen])
    paired = {id(pool) for pair in pairs for pool in pair}
    only = [[pool for pool in side if id(pool) not in paired] for side in (then, now)]
    identities = {pool.identity for pair in pairs for pool in pair}
    differing = tuple(
        field
        for field in SURROUNDINGS
        if len({frozenset(_values_of(side, identities, field)) for side in (before, after)}) > 1
    )
    return Comparisons(comparisons, only[0], only[1], differing)


def _values_of(side: Sequence[Recording], identities: set[CellIdentity], field: str) -> Iterator[str]:
    for source in side:
        yield from (getattr(cell.identity, field) for cell in source.cells if planned(cell.identity) in identities)


def _compared(before: Pool, after: Pool, metric: Metric, run_sd: float | None) -> Comparison:
    then, now, change, reason, bases = change_of(before, after, metric, run_sd)
    if change is None:
        verdict = INCONCLUSIVE
    elif metric.quantity != FAILURE_RATE and (before.disturbed or after.disturbed):
        change, verdict, reason = Interval(change.value), INCONCLUSIVE, DISTURBED
    else:
        verdict, reason = _judged(change, metric.limit)
        if verdict == INCONCLUSIVE and metric.quantity == FAILURE_RATE and after.succeeded == len(after.trials):
            verdict, reason = NO_DIFFERENCE, ""  # however few trials: nothing speaks for more failures
    comparison = Comparison(before, after, metric, then, now, change, verdict, reason, bases)
    return comparison._replace(needs=_needs(comparison)) if verdict == INCONCLUSIVE else comparison


def _judged(change: Interval, limit: float) -> tuple[str, str]:
    """Return the verdict of an interval, and the reason for an inconclusive verdict."""
    low, high = -math.inf if change.low is None else change.low, math.inf if change.high is None else change.high
    if low > 0:
        return WORSE, ""
    if high < 0:
        return BETTER, ""
    if -limit <= low and high <= limit:
        return NO_DIFFERENCE, ""
    return INCONCLUSIVE, TOO_FEW if math.isinf(high - low) else "the interval is wider than the limit"


def _needs(comparison: Comparison, level: float = LEVEL) -> int | None:
    """Return the repetitions per side for a change of the limit, with intervals of this ``level``."""
    if comparison.change is None:
        return None
    sides, difference = comparison.repetitions, comparison.metric.limit or METRIC_LIMIT
    return repetitions_needed(comparison.change, sides, difference, measured=comparison.measured, level=level)


def _together(comparisons: list[Comparison]) -> list[Comparison]:
    """Mark metrics that are worse alone, but not among all tested metrics.

    The error of each is at most ``FALSE_ALARMS`` divided by the number of tests, on the side of worse (C. E.
    Bonferroni, 1936). For up to two tests the 95 % interval has this error.
    """
    tests = sum(_can_be_worse(comparison) for comparison in comparisons)
    level = max(LEVEL, 1 - 2 * FALSE_ALARMS / max(1, tests))
    reason = f"among {tests} metrics chance may explain the change"
    return [
        comparison._replace(by_chance=True, reason=reason, needs=_needs(comparison, level))
        if comparison.verdict == WORSE and not _worse_at(comparison, level)
        else comparison
        for comparison in comparisons
    ]


def _can_be_worse(comparison: Comparison) -> bool:
    """Whether the change has a lower limit, and a failure rate has a failure."""
    if comparison.change is None or comparison.change.low is None:
        return False
    return comparison.metric.quantity != FAILURE_RATE or comparison.after.succeeded < len(comparison.after.trials)


def _worse_at(comparison: Comparison, level: float) -> bool:
    """Whether an interval of this level, which is at least 95 %, is above 0."""
    change = comparison.change
    assert change is not None
    assert change.low is not None
    value, low = change.value, change.low
    if comparison.metric.quantity != FAILURE_RATE:  # the limits of a ratio are even on a logarithmic scale
        value, low = math.log1p(value), math.log1p(low)
    if comparison.measured:
        freedom = sum(comparison.repetitions) - 2
        wider = student_t(freedom, level) / student_t(freedom)
    else:
        wider = NormalDist().inv_cdf((1 + level) / 2) / NORMAL
    return value > wider * (value - low)
