"""How far the end of a run may move because K trials do not show the tail of a trajectory's distribution.

The end of N jobs depends on jobs rarer than K trials can show. Order statistics bound how much sooner it may come, for
any distribution. How much later is bounded only if the trials contain a longer job. The longest of N is expected to be
as long as one job in 2 N. K = 3.7 × 2 N trials contain such a job with 97.5 % probability. With fewer trials only a
time limit bounds the end; else the run takes "at least" this long. Both limits are those of 95 % intervals.
docs/statistics.md, "Tails".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Final, NamedTuple

from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import LEVEL
from costmodel.training.run import TrainingRun
from costmodel.units import NS_PER_S

RISK: Final = (1 - LEVEL) / 2
TOP: Final = 200
"""Number of longest trials used one by one; other trials are represented by as many quantiles."""
NORMAL: Final = NormalDist().inv_cdf(1 - RISK)
SUMMED: Final = 30
"""Largest number of excess jobs with an exact Poisson sum; beyond it the square root is normal."""


class TailLimits(NamedTuple):
    """How much sooner and later than for the law of the trials a run may end; neither is below 0."""

    sooner_ns: float
    later_ns: float | None  # None: unbounded by the trials
    needs_trials: int | None  # necessary trials, if unbounded


NO_TAIL: Final = TailLimits(0.0, 0.0, None)


def tail_limits(
    law: Distribution, jobs: int, end_ns: float, training_run: TrainingRun, *, excess: int = 0
) -> TailLimits:
    """Return limits of the end of ``jobs`` on the usable workers at ``end_ns``, without the last ``excess`` of them.

    There are none where the last jobs take less than the tolerated share of the time. The wall-clock is then
    worker-hours divided by workers, equally certain.
    """
    workers, tolerance = training_run.usable_workers, training_run.precision.tolerance
    room_ns = end_ns - jobs * law.mean / workers if law.mean else 0.0
    if not jobs or (room_ns <= tolerance * end_ns and not excess):
        return NO_TAIL
    trials = law.trials
    highest = min(trials, TOP)
    values = [law.quantile((rank + 0.5) / trials) for rank in range(trials - 1, trials - 1 - highest, -1)]
    rest = trials - highest
    body = [law.quantile(rest / trials * (1 - (group + 0.5) / TOP)) for group in range(TOP)] if rest else []

    def last(beyond: Sequence[float]) -> float:
        """E[the last of the jobs but for the excess] if the highest values are met so often among K."""
        unseen = max(0.0, trials - beyond[-1])
        spread = [beyond[-1] + unseen * (group + 1) / TOP for group in range(len(body))]
        return _last(values + body, [min(1.0, count / trials) for count in [*beyond, *spread]], jobs, excess)

    seen = last(range(1, highest + 1))
    if seen <= tolerance * end_ns and not excess:  # another limit, such as a create rate, takes the time
        return NO_TAIL
    sooner = max(0.0, min(seen - last([_count(rank, -1) for rank in range(1, highest + 1)]), room_ns))
    behind = jobs / (excess + 0.5)  # the median of the r-th longest of N is met by r − ½ in N, nearly
    needs = math.ceil(behind * -math.log(RISK))
    if trials >= needs:
        counts = [_count(rank, 1) for rank in range(1, highest + 1)]
        rank = sum(count <= trials / behind * (1 + 1e-9) for count in counts)  # as rare with 97.5 % probability
        later = max(last(counts), values[rank - 1]) - seen
    elif training_run.timeout_s is not None:
        later = _timed_out(values[0], trials, jobs, excess, training_run) - seen
    else:
        return TailLimits(sooner, None, needs)
    return TailLimits(sooner, max(0.0, later), None)


def _last(values: Sequence[float], met: Sequence[float], jobs: int, excess: int) -> float:
    """Return E[the longest of ``jobs`` without the ``excess`` longest], from the share at or above each descending
    value."""
    parts = zip(pairwise([*values, 0.0]), met, strict=True)
    return math.fsum((high - low) * _more_than(excess, jobs, share) for (high, low), share in parts)


def _more_than(excess: int, jobs: int, share: float) -> float:
    """P(more than ``excess`` of ``jobs`` last so long), each with probability ``share``."""
    if share >= 1:
        return 1.0
    expected = -jobs * math.log1p(-share)
    if excess == 0:
        return -math.expm1(-expected)
    if excess > SUMMED:
        return NormalDist().cdf(2 * (math.sqrt(expected) - math.sqrt(excess + 1)))
    term = total = math.exp(-expected)
    for number in range(1, excess + 1):
        term *= expected / number
        total += term
    return max(0.0, 1 - total)


def _count(rank: int, side: int) -> float:
    """Return how many of K durations exceed the value of a rank: the 2.5 % or 97.5 % quantile of K·Beta(rank, K + 1 −
    rank).

    P(X ≥ X_(i)) of K independent trials has this distribution, or lies above it. Exact for the first rank and large K;
    else the gamma quantiles of Wilson and Hilferty (1931).
    """
    if rank == 1:
        return -math.log1p(-RISK) if side < 0 else -math.log(RISK)
    return rank * (1 - 1 / (9 * rank) + side * NORMAL / (3 * math.sqrt(rank))) ** 3


def _timed_out(longest_ns: int, trials: int, jobs: int, excess: int, training_run: TrainingRun) -> float:
    """Return E[the last end] if unseen attempts reach the time limit, at each retry again.

    No distribution compatible with the trials is worse: an attempt slower than all trials is at worst ended by the
    limit.
    """
    missed = -math.expm1(math.log(RISK) / trials)
    kills = math.ceil(math.log(1e-3 / jobs) / math.log(missed))
    if training_run.max_attempts is not None:
        kills = min(kills, training_run.max_attempts - 1)
    workers, limit_ns = training_run.usable_workers, round((training_run.timeout_s or 0.0) * NS_PER_S)
    lost_ns, longest = limit_ns + round(training_run.backoff_s * NS_PER_S), max(longest_ns, limit_ns)
    ends = [kill * lost_ns + longest for kill in range(kills, -1, -1)]
    more_work = jobs * missed / (1 - missed) * lost_ns / workers if jobs > workers else 0.0
    return _last(ends, [missed**kill for kill in range(kills, -1, -1)], jobs, excess) + more_work
