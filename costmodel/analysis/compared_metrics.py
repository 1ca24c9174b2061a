"""Metrics of a cell, and the change of each between two sides."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from costmodel.errors import TrainingRunError
from costmodel.recording.trial import NOT_RECORDED, PER_ACTION, PER_TRIAL, RecordedTrial, values_of
from costmodel.statistics.intervals import Interval, difference, quantile, ratio, wilson_interval
from costmodel.statistics.quantiles import percentile, percentile_with_runs, spread_of, worth
from costmodel.statistics.repetitions import (
    Assumed,
    Basis,
    Estimate,
    RunKey,
    assumed,
    between,
    estimate,
    interval,
    margins,
    measures,
)
from costmodel.workload.pool import Pool

METRIC_LIMIT: Final = 0.10
"""Limit of a metric without a given limit."""
FAILURE_RATE: Final = "failure_rate"
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


class Change(NamedTuple):
    """A metric of both sides before the verdict; ``reason`` is why there is no change."""

    then: ComparedSide
    now: ComparedSide
    change: Interval | None
    reason: str = ""
    bases: tuple[Basis, ...] = ()


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


def change_of(before: Pool, after: Pool, metric: Metric, run_sd: float | None) -> Change:
    """Compute a metric of both sides and its change; ``run_sd`` is the field of ``TrainingRun``."""
    assume = max(assumed(pool.identity.substrate, run_sd) for pool in (before, after))
    if metric.quantity == FAILURE_RATE:
        return _failures(before, after)
    if metric.p is None:
        return _means(before, after, metric.quantity, assume)
    return _percentiles(before, after, metric.quantity, metric.p, assume)


def _failures(before: Pool, after: Pool) -> Change:
    """Compare shares of failed trials, with Newcombe's interval of the difference, from Wilson's (1998)."""
    then, now = (wilson_interval(sum(not t.ok for t in pool.trials), len(pool.trials)) for pool in (before, after))
    sides = ComparedSide(len(before.trials), then), ComparedSide(len(after.trials), now)
    return Change(*sides, difference(now, then))


def _means(before: Pool, after: Pool, quantity: str, assume: Assumed) -> Change:
    means = _mean(before, quantity), _mean(after, quantity)
    then, now = (ComparedSide(values, mean and interval(mean, assume)) for values, mean in means)
    (_, was), (_, value) = means
    if was is None or value is None:
        return _missing(then, now)
    change = _relative(value.within, was.within)
    if change is not None:
        change = _wider(change, _relative(*margins(value, was, assume)))
    sd = math.sqrt(between((value, was))) if measures(value, was) and not assume.by_user else None
    return Change(then, now, change, WAS_ZERO, _bases((len(was.parts), len(value.parts)), sd, assume))


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
    return sum(sizes), estimate(sums, sizes, [(trial.run, trial.block) for trial in trials])


def _reports(pool: Pool, quantity: str) -> bool:
    return not any(quantity in NOT_RECORDED.get(source, ()) for source in pool.unreported)


def _percentiles(before: Pool, after: Pool, quantity: str, p: float, assume: Assumed) -> Change:
    runs = [_by_run(pool, quantity) for pool in (before, after)]
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
        return Change(then, now, None, needed[0]) if needed else _missing(then, now)
    spread = None if assume.by_user else spread_of(p, *runs)
    bases = _bases((len(runs[0]), len(runs[1])), spread and spread.sd, assume)
    return Change(then, now, _relative(now.at, then.at), WAS_ZERO, bases)


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


def _missing(then: ComparedSide, now: ComparedSide) -> Change:
    missing = [when for side, when in zip((then, now), SIDES, strict=True) if side.at is None]
    return Change(then, now, None, f"no value {' and '.join(missing)}")


def _relative(now: Interval, then: Interval) -> Interval | None:
    """Return the relative change; None where it was 0 before."""
    if then.value <= 0:
        return None
    return ratio(now, then).shifted(-1)


def _wider(change: Interval, limits: Interval | None) -> Interval:
    """Return the outer limits of both, or ``change`` where the second is missing."""
    if limits is None or change.low is None or limits.low is None:
        return change
    high = None if change.high is None or limits.high is None else max(change.high, limits.high)
    return Interval(change.value, min(change.low, limits.low), high)
