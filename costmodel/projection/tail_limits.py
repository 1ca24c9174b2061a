"""How far the end of a run may move because the tail of a trajectory's law is not known: from K trials, nothing drawn.

The end of N jobs on W workers hangs on jobs that are rarer than any that K trials can show. How much sooner it may
come is bounded by order statistics, without assumptions; how much later only if one extrapolates, or where a timeout
says how long the longest can be. Both ends are those of 95 % intervals. docs/statistics.md, "Tails".
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist
from typing import Final, NamedTuple

from costmodel.statistics.distribution import Distribution
from costmodel.statistics.end_effect import Survival, overhang
from costmodel.statistics.intervals import LEVEL
from costmodel.statistics.pareto import heaviest

RISK: Final = (1 - LEVEL) / 2
UPPER: Final = 0.985
"""Of the posterior: a little more than 1 − RISK, as laws come to their Pareto tail slowly, and from below."""
RARE: Final = 0.02
"""What an upper limit must have had a chance to see: with 149 trials it is missing from 5 % of all samples."""
LEAST_TRIALS: Final = math.ceil(math.log(1 - LEVEL) / math.log(1 - RARE))
MAGNITUDE: Final = 10
"""An extrapolated upper limit this many times as high as the value says nothing, and is not printed."""
TOP: Final = 200
"""So many of the highest trials stand for themselves, the others in as many groups."""
ABOVE: Final = 10
"""One trial in so many is above the threshold."""
NORMAL: Final = NormalDist().inv_cdf(1 - RISK)
FINENESS: Final = 0.75
"""Each atom of an extrapolated tail is so many times as rare as the one before."""


class Timeout(NamedTuple):
    """What bounds an attempt."""

    limit_ns: int
    backoff_ns: int
    max_attempts: int | None


class Reach(NamedTuple):
    """How much sooner and later than for the law as it was seen a run may end; neither is below 0."""

    sooner_ns: float
    later_ns: float | None  # None: the trials do not bound it
    needs_trials: int | None  # how many would, where they do not


def reach(
    law: Distribution,
    jobs: int,
    workers: int,
    end_ns: float,
    *,
    tolerance: float = 0.0,
    excess: int = 0,
    timeout: Timeout | None = None,
) -> Reach:
    """Of ``jobs`` on ``workers``, which end without the last ``excess`` of them after ``end_ns`` for this law.

    Nothing, where the last jobs alone take less than the share ``tolerance`` of the time: then the wall-clock is the
    worker-hours by the workers, and as sure as they are.
    """
    if not jobs or not law.mean or (end_ns - jobs * law.mean / workers <= tolerance * end_ns and not excess):
        return Reach(0.0, 0.0, None)
    trials = _Trials.of(law)
    seen = overhang(trials.law(), jobs, workers, excess)
    if seen <= tolerance * end_ns and not excess:  # though something else, such as a create rate, takes its time
        return Reach(0.0, 0.0, None)
    sooner = max(0.0, seen - overhang(trials.lightest(), jobs, workers, excess))
    limits, needs = [], LEAST_TRIALS
    if trials.size >= LEAST_TRIALS:
        limits.append(overhang(trials.heaviest(jobs), jobs, workers, excess) - seen)
        needs = max(needs, math.ceil(jobs / (excess + 1) * -math.log(RISK)))  # then such a job is among the trials
    if timeout is not None:
        killed = trials.killed(timeout, jobs)
        more_work = jobs * (killed.mean - trials.law().mean) / workers
        limits.append(overhang(killed, jobs, workers, excess) + more_work - seen)
    later = max(0.0, min(limits, default=math.inf))
    if math.isinf(later) or (timeout is None and trials.size < needs and later > (MAGNITUDE - 1) * end_ns):
        return Reach(sooner, None, needs)
    return Reach(sooner, later, None)


class _Trials(NamedTuple):
    """K trials: the highest one by one, the rest in groups; ascending, ns."""

    size: int
    body: list[int]
    top: list[int]

    @classmethod
    def of(cls, law: Distribution) -> _Trials:
        """A law that is made of versions of its trials is seen through as many quantiles as there are trials."""
        count = law.trials
        top = min(count, TOP)
        groups = min(count - top, TOP)
        share = (count - top) / count
        body = [law.quantile(share * (group + 0.5) / groups) for group in range(groups)]
        return cls(count, body, [law.quantile((rank + 0.5) / count) for rank in range(count - top, count)])

    def _of_body(self, mass: float, highest: int) -> list[float]:
        """Weights of all but the ``highest``, which add up to ``mass``."""
        left = self.size - highest
        group = (self.size - len(self.top)) / len(self.body) if self.body else 0.0
        return [mass * group / left] * len(self.body) + [mass / left] * (len(self.top) - highest)

    def law(self) -> Survival:
        """As they are."""
        return Survival([*self.body, *self.top], self._of_body(1.0, 0))

    def lightest(self) -> Survival:
        """The i-th highest is exceeded, or met, at least as often as the 2.5 % quantile of Beta(i, K + 1 − i) says.

        That holds for any law: P(X ≥ X_(i)) of K independent trials is Beta distributed, or above it.
        """
        highest = max(1, min(len(self.top) - 1, max(10, self.size // 3)))
        if self.size <= highest:
            return self.law()
        met = [_rarely(rank) / self.size for rank in range(1, highest + 1)]
        weights = [met[0], *(more - less for less, more in pairwise(met))]
        return Survival([*self.body, *self.top], [*self._of_body(1 - met[-1], highest), *reversed(weights)])

    def heaviest(self, jobs: int) -> Survival:
        """Above the highest tenth, the Pareto tail that is as heavy as the trials allow for one job in ``jobs``."""
        highest = min(self.size // ABOVE, len(self.top) - 1)
        threshold = self.top[-highest - 1]
        excesses = [float(value - threshold) for value in self.top[-highest:]]
        if not excesses[-1]:
            return self.law()
        above = highest / self.size
        tail = heaviest(excesses, max(2.0, above * jobs), UPPER)
        depth = math.ceil(math.log(1e-3 / (above * jobs)) / math.log(FINENESS))
        rarer = [FINENESS**step for step in range(max(1, depth) + 1)]
        values = [threshold + tail.quantile_ns(1 / math.sqrt(less * more)) for more, less in pairwise(rarer)]
        weights = [above * (more - less) for more, less in pairwise(rarer)]
        return Survival([*self.body, *self.top[:-highest], *values], [*self._of_body(1 - above, highest), *weights])

    def killed(self, timeout: Timeout, jobs: int) -> Survival:
        """As many more attempts run into the timeout as K trials may have missed, each time anew.

        No law that the trials do not exclude is worse: what is slower than all that was seen is at worst killed.
        """
        missed = -math.expm1(math.log(RISK) / self.size)
        weights = dict.fromkeys([*self.body, *self.top], 0.0)
        for value, weight in zip([*self.body, *self.top], self._of_body(1.0, 0), strict=True):
            weights[value] += weight
        kills = math.ceil(math.log(1e-3 / jobs) / math.log(missed))
        last = kills if timeout.max_attempts is None else min(kills, timeout.max_attempts - 1)
        lost_ns = timeout.limit_ns + timeout.backoff_ns
        atoms: dict[float, float] = {}
        for kill in range(last + 1):
            for value, weight in weights.items():
                at = value + kill * lost_ns
                atoms[at] = atoms.get(at, 0.0) + (1 - missed) * missed**kill * weight
        if last < kills:  # given up
            atoms[last * lost_ns + timeout.limit_ns] = missed ** (last + 1)
        values = sorted(atoms)
        return Survival(values, [atoms[value] for value in values])


def _rarely(rank: int) -> float:
    """The 2.5 % quantile of K·Beta(rank, K + 1 − rank), by the gamma law that it is for large K.

    Exact for the first; as Wilson and Hilferty (1931) have it beyond, which is a little low.
    """
    if rank == 1:
        return -math.log1p(-RISK)
    return rank * (1 - 1 / (9 * rank) - NORMAL / (3 * math.sqrt(rank))) ** 3
