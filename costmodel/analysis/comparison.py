"""Compare two sets of recordings: each metric of each cell, before and after."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import chain
from statistics import NormalDist
from types import MappingProxyType
from typing import Final, NamedTuple

from costmodel.errors import TrainingRunError
from costmodel.recording.reader import Recording, files_of
from costmodel.recording.trial import NOT_RECORDED, PER_ACTION, PER_TRIAL, CellIdentity, RecordedTrial, values_of
from costmodel.statistics import intervals, repetitions, verdict
from costmodel.statistics.intervals import LEVEL, Interval, difference, quantile, ratio, student_t
from costmodel.statistics.quantiles import percentile, percentile_with_runs, spread_of, worth
from costmodel.statistics.repetitions import MIN_RUNS, NORMAL, Assumed, Basis, Estimate, RunKey
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
METRIC_LIMIT: Final = 0.10
"""Limit of a metric without a given limit."""
FAILURE_RATE: Final = "failure_rate"
REPETITION_WORTH: Final = 20
"""Independent trials, at most, that a repetition is assumed to be worth for a failure rate."""
HELD: Final = "held_per_success"
SIDES: Final = ("before", "after")
WAS_ZERO: Final = "it was 0 before"

PER_SUCCESS: Final = MappingProxyType[str, Callable[[RecordedTrial, float | None], int]](
    {
        HELD: lambda trial, _: trial.measures.held_ns,
        "tax_per_success": lambda trial, contended: trial.measures.tax_ns(ok=trial.ok, contended=contended),
    }
)
"""Quantity → amount of a trial, summed and divided by the number of successes. Means only."""

DEFAULT_METRICS: Final = ("mean:trajectory", "p50:action", FAILURE_RATE)
"""Compared metrics without a selection."""

_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


class Metric(NamedTuple):
    """A statistic of a quantity, and the change that matters: relative, for ``failure_rate`` in shares of trials."""

    name: str  # p95:cold_start
    quantity: str
    p: float | None  # of a percentile; None for a mean
    limit: float


class ComparedSide(NamedTuple):
    """A metric of one cell on one side: ns, or a share for ``failure_rate``. None: unknown."""

    values: int  # number of values; of trials for ``failure_rate``
    at: Interval | None


class Comparison(NamedTuple):
    """A metric of a cell, before and after."""

    before: Pool
    after: Pool
    metric: Metric
    then: ComparedSide
    now: ComparedSide
    change: Interval | None  # relative; for ``failure_rate`` the difference of the two shares
    reason: str = ""  # reason of INCONCLUSIVE, or of ``by_chance``
    bases: tuple[Basis, ...] = ()  # source of the between-repetition part of the interval
    verdict: str = INCONCLUSIVE  # of ``COMPARISON_VERDICTS``
    needs: int | None = None  # repetitions per side for a change of the limit; None: none needed, or unknown
    by_chance: bool = False  # worse, but the metrics are so many that chance may explain the change

    @property
    def repetitions(self) -> tuple[int, int]:
        """Repetitions before and after."""
        return len(self.before.runs), len(self.after.runs)

    @property
    def measured(self) -> bool:
        """Whether these repetitions show how much repetitions differ; else an sd is assumed."""
        enough = self.metric.quantity == FAILURE_RATE and _freedom(self.before, self.after) >= MIN_RUNS
        return enough or any(basis.measured for basis in self.bases)

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


def parse_metric(name: str, limit: float = METRIC_LIMIT) -> Metric:
    """Return the metric ``mean:QUANTITY``, ``p50:QUANTITY`` or another percentile, or ``failure_rate``.

    Raises:
        TrainingRunError: there is no metric of that name; the message lists the known ones.
    """
    if name == FAILURE_RATE:
        return Metric(name, name, None, limit)
    statistic, _, quantity = name.partition(":")
    match = _PERCENTILE.fullmatch(statistic)
    p = float(match[1]) / 100 if match else None
    quantities = [*PER_TRIAL, *PER_ACTION, *(() if match else PER_SUCCESS)]
    if p == 0 or (p is None and statistic != "mean"):
        raise TrainingRunError(
            f"there is no metric {name!r}: write mean:QUANTITY, a percentile as p50:QUANTITY, or {FAILURE_RATE}; "
            f"quantities are {', '.join(quantities)}"
        )
    if quantity not in quantities:
        raise TrainingRunError(f"there is no metric {name!r}: quantities of {statistic} are {', '.join(quantities)}")
    return Metric(name, quantity, p, limit)


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
    before, after = ([file for file in files_of(side) if isinstance(file, Recording)] for side in (before, after))
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
    judged = {pool.identity for pair in pairs for pool in pair}
    sides = [
        [cell.identity for source in side for cell in source.cells if planned(cell.identity) in judged]
        for side in (before, after)
    ]
    differing = tuple(
        field
        for field in SURROUNDINGS
        if len({frozenset(getattr(identity, field) for identity in side) for side in sides}) > 1
    )
    return Comparisons(comparisons, only[0], only[1], differing)


def _compared(before: Pool, after: Pool, metric: Metric, run_sd: float | None) -> Comparison:
    assume = max(repetitions.assumed(pool.identity.substrate, run_sd) for pool in (before, after))
    if metric.quantity == FAILURE_RATE:
        comparison = _failures(before, after, metric)
    elif metric.p is None:
        comparison = _means(before, after, metric, assume)
    else:
        comparison = _percentiles(before, after, metric, metric.p, assume)
    change = comparison.change
    if change is not None and metric.quantity != FAILURE_RATE and (before.disturbed or after.disturbed):
        comparison = comparison._replace(change=Interval(change.value), reason=DISTURBED)
    elif change is not None:
        kind, reason = _judged(change, metric.limit)
        if kind == INCONCLUSIVE and metric.quantity == FAILURE_RATE and after.succeeded == len(after.trials):
            kind, reason = NO_DIFFERENCE, ""  # however few trials: nothing speaks for more failures
        comparison = comparison._replace(verdict=kind, reason=reason)
    return comparison._replace(needs=_needs(comparison)) if comparison.verdict == INCONCLUSIVE else comparison


def _judged(change: Interval, limit: float) -> tuple[str, str]:
    """Return the verdict of an interval, and the reason for an inconclusive verdict."""
    low, high = -math.inf if change.low is None else change.low, math.inf if change.high is None else change.high
    if low > 0:
        return WORSE, ""
    if high < 0:
        return BETTER, ""
    if -limit <= low and high <= limit:
        return NO_DIFFERENCE, ""
    return INCONCLUSIVE, TOO_FEW if math.isinf(high - low) else "the interval contains 0 and reaches beyond the limit"


def _needs(comparison: Comparison, level: float = LEVEL) -> int | None:
    """Return the repetitions per side for a change of the limit, with intervals of this ``level``."""
    if comparison.change is None:
        return None
    sides, difference = comparison.repetitions, comparison.metric.limit or METRIC_LIMIT
    return verdict.repetitions_needed(comparison.change, sides, difference, measured=comparison.measured, level=level)


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


def _failures(before: Pool, after: Pool, metric: Metric) -> Comparison:
    """Compare shares of failed trials, with Newcombe's interval of the difference, from Wilson's (1998).

    Failures come together, so that several trials are worth one: as many as correlated neighbours show, and the ratio
    of the variance between repetitions to the binomial variance, with Student's t. Where repetitions are too few to
    show the ratio, one is worth at most ``REPETITION_WORTH`` trials.
    """
    sides = []
    for pool in (before, after):
        rate = 1 - pool.succeeded / len(pool.trials)
        by_run: dict[RunKey, list[float]] = {}
        for trial in pool.trials:
            by_run.setdefault(trial.run, []).append((not trial.ok) - rate)
        sides.append(list(by_run.values()))
    together = intervals.correlation_time([*sides[0], *sides[1]], only_if_seen=True)  # trials that are worth one
    freedom = _freedom(before, after)
    spread = sum(sum(run) ** 2 for runs in sides for run in runs)
    shares = [sum(len(run) ** 2 for run in runs) / sum(map(len, runs)) ** 2 for runs in sides]  # P(2 trials of one run)
    pairs = zip((before, after), shares, strict=True)
    binomial = sum((1 - share) * pool.succeeded * (1 - pool.succeeded / len(pool.trials)) for pool, share in pairs)
    if freedom >= MIN_RUNS and spread > binomial:
        together = max(together, spread / binomial * (student_t(freedom) / NORMAL) ** 2)
    rates = []
    for pool, runs, share in zip((before, after), sides, shares, strict=True):
        count = len(pool.trials)
        worth_one = together if freedom >= MIN_RUNS else max(together, count / len(runs) / REPETITION_WORTH)
        worth_one *= len(runs) * share  # repetitions of different size
        rates.append(intervals.wilson_interval((count - pool.succeeded) / worth_one, count / worth_one))
    then, now = (ComparedSide(len(pool.trials), rate) for pool, rate in zip((before, after), rates, strict=True))
    return Comparison(before, after, metric, then, now, difference(rates[1], rates[0]))


def _freedom(*pools: Pool) -> int:
    """Return the degrees of freedom of failures between repetitions: of pools with failures and successes."""
    return sum(len(pool.runs) - 1 for pool in pools if 0 < pool.succeeded < len(pool.trials))


def _means(before: Pool, after: Pool, metric: Metric, assume: Assumed) -> Comparison:
    means = _mean(before, metric.quantity), _mean(after, metric.quantity)
    then, now = (ComparedSide(values, mean and repetitions.interval(mean, assume)) for values, mean in means)
    (_, was), (_, value) = means
    if was is None or value is None:
        return Comparison(before, after, metric, then, now, None, _missing(then, now))
    change = verdict.ratio(value, was, assume)
    measured = repetitions.measures(value, was) and not assume.by_user
    sd = math.sqrt(repetitions.between((value, was))) if measured else None
    bases = _bases((len(was.parts), len(value.parts)), sd, assume)
    return Comparison(before, after, metric, then, now, change and change.shifted(-1), WAS_ZERO, bases)


def _mean(pool: Pool, quantity: str) -> tuple[int, Estimate | None]:
    """Return the number of values and their mean, by repetition."""
    if (part := PER_SUCCESS.get(quantity)) is not None:
        trials = pool.trials
        sums, sizes = [part(trial, pool.contended) for trial in trials], [int(trial.ok) for trial in trials]
        complete = "held" not in pool.unreported and (
            quantity == HELD or all(t.measures.divided for t in pool.successes)
        )
    else:
        trials = pool.successes
        values = [values_of(trial, quantity) for trial in trials]
        sums, sizes, complete = list(map(sum, values)), list(map(len, values)), _reports(pool, quantity)
    if not complete or not any(sizes):
        return 0, None
    return sum(sizes), repetitions.estimate(sums, sizes, [(trial.run, trial.block) for trial in trials])


def _reports(pool: Pool, quantity: str) -> bool:
    return not any(quantity in NOT_RECORDED.get(source, ()) for source in pool.unreported)


def _percentiles(before: Pool, after: Pool, metric: Metric, p: float, assume: Assumed) -> Comparison:
    runs = [_by_run(pool, metric.quantity) for pool in (before, after)]
    sides, needed = [], []
    for values_of_run, opposite, when in zip(runs, reversed(runs), SIDES, strict=True):
        values = sorted(chain.from_iterable(chain.from_iterable(values_of_run)))
        if not values:
            sides.append(ComparedSide(0, None))
            continue
        at = percentile_with_runs(
            percentile(values, p, worth(values_of_run, quantile(values, p))), p, values_of_run, assume, opposite
        )
        if at.value is None:
            needed.append(f"needs {at.needs:,} values, has {len(values):,} {when}")
        sides.append(ComparedSide(len(values), None if at.value is None else Interval(at.value, at.low, at.high)))
    then, now = sides
    if then.at is None or now.at is None:
        return Comparison(before, after, metric, then, now, None, needed[0] if needed else _missing(then, now))
    spread = None if assume.by_user else spread_of(p, *runs)
    bases = _bases((len(runs[0]), len(runs[1])), spread and spread[0], assume)
    change = ratio(now.at, then.at).shifted(-1) if then.at.value > 0 else None
    return Comparison(before, after, metric, then, now, change, WAS_ZERO, bases)


def _by_run(pool: Pool, quantity: str) -> list[list[Sequence[int]]]:
    runs: dict[RunKey, list[Sequence[int]]] = {}
    for trial in pool.successes if _reports(pool, quantity) else ():
        if values := values_of(trial, quantity):
            runs.setdefault(trial.run, []).append(values)
    return list(runs.values())


def _bases(runs: tuple[int, int], sd: float | None, assume: Assumed) -> tuple[Basis, ...]:
    """Return one basis where both sides' repetitions show an sd, else one per side."""
    if sd is not None:
        return (Basis(sum(runs), sd, measured=True, source="measured"),)
    return tuple(Basis(count, assume.sd, measured=False, source=assume.source) for count in runs)


def _missing(then: ComparedSide, now: ComparedSide) -> str:
    missing = [when for side, when in zip((then, now), SIDES, strict=True) if side.at is None]
    return f"no value {' and '.join(missing)}"
