"""Weighted sums over the attempts of a cell, in total and by trial."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from operator import mul

from costmodel.recording.breakdown import UNKNOWN
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval, quantile
from costmodel.statistics.quantiles import Percentile, percentile, percentile_with_runs, worth_by_value
from costmodel.statistics.repetitions import WITHIN_ONLY, Assumed, Estimate, Origin, RunKey, estimate, interval
from costmodel.workload.attempts import Attempt

Value = Callable[[Attempt], int]
"""Whole number of an attempt."""

MAX_VERSIONS = 1_000
"""Versions of a trial in percentiles; more are replaced by this number of quantiles."""


class Tally:
    """Attempts at one length. A quantity "per success" is the sum over all attempts divided by the successes."""

    def __init__(
        self, attempts: Sequence[Attempt], trials: Sequence[RecordedTrial], assume: Assumed = WITHIN_ONLY
    ) -> None:
        """Take attempts of ``trials`` with equal total weight; ``assume`` applies to fewer than three runs."""
        self.attempts = attempts
        self.trials = trials
        self.assume = assume
        self._origins: list[Origin] = [(trial.run, trial.block) for trial in trials]
        self._weights = [attempt.weight for attempt in attempts]
        self._weights_of_successes = [attempt.weight * attempt.ok for attempt in attempts]
        self.weight = Fraction(sum(self._weights), len(trials) or 1)  # of a trial
        self._ok = self.by_trial(lambda attempt: attempt.ok)
        self.successes = Fraction(sum(self._ok)) / self.weight if attempts else Fraction(0)

    def by_trial(self, value: Value) -> Sequence[int]:
        """Return the weighted sum of ``value`` for each trial."""
        sums = [0] * len(self.trials)
        for attempt in self.attempts:
            sums[attempt.trial] += attempt.weight * value(attempt)
        return sums

    def total(self, value: Value) -> Fraction:
        """Return the sum over trials, with versions weighted by their share."""
        return Fraction(sum(map(mul, self._weights, map(value, self.attempts)))) / self.weight

    def total_of_successes(self, value: Value) -> Fraction:
        """Return the sum over successful trials, with versions weighted by their share."""
        return Fraction(sum(map(mul, self._weights_of_successes, map(value, self.attempts)))) / self.weight

    def estimate(self, value: Value, idle: Value | None = None) -> Estimate:
        """Return Σ value over all attempts / successes; ``idle`` is intended idle time, the same in every run."""
        still = 0.0 if idle is None else float(self.total(idle) / self.successes)
        return estimate(self.by_trial(value), self._ok, self._origins, still)

    def per_success(self, value: Value, idle: Value | None = None) -> Interval:
        """Return ``estimate`` with its interval, over trials and runs."""
        return interval(self.estimate(value, idle), self.assume)

    def percentiles(self, ps: Sequence[float]) -> list[Percentile]:
        """Return percentiles of successful trajectories in ns, with the spread between runs.

        ``needs`` counts trials. Versions of a trial are worth one trial.
        """
        by_run: dict[RunKey, list[list[int]]] = {}  # trajectories of each successful trial, versions by weight
        versions_of: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for attempt in self.attempts:
            if attempt.ok:
                versions_of[attempt.trial][attempt.trajectory_ns] += attempt.weight
        divisor = math.gcd(*(weight for versions in versions_of.values() for weight in versions.values()))
        limit = max((sum(versions.values()) // divisor for versions in versions_of.values()), default=0)
        for trial, versions in sorted(versions_of.items()):
            values = _quantiles(versions, divisor if limit <= MAX_VERSIONS else limit * divisor / MAX_VERSIONS)
            by_run.setdefault(self._origins[trial][0], []).append(values)
        runs = list(by_run.values())
        trials = sum(map(len, runs))
        ascending = sorted(chain.from_iterable(chain.from_iterable(runs)))

        worth_at, percentiles = worth_by_value(runs), []
        for p in ps:
            limits = percentile(ascending, p, min(trials, worth_at(quantile(ascending, p))))
            needs_trials = -(-limits.needs * trials // len(ascending))
            percentiles.append(percentile_with_runs(limits._replace(needs=needs_trials), p, runs, self.assume))
        return percentiles

    @property
    def failure(self) -> Fraction:
        return 1 - self.successes / len(self.trials)

    @cached_property
    def run_known(self) -> bool:
        """Whether the in-sandbox time of every success is known."""
        return all(attempt.run_ns != UNKNOWN for attempt in self.attempts if attempt.ok)

    def held_times(self, counts: Callable[[Attempt], bool]) -> Distribution | None:
        """Return the distribution of occupied times of the attempts that count; None without any."""
        weights: Counter[int] = Counter()
        trials = set()
        for attempt in self.attempts:
            if counts(attempt):
                weights[attempt.held_ns] += attempt.weight
                trials.add(attempt.trial)
        divisor = math.gcd(*weights.values())  # smaller weights are drawn faster
        return Distribution({ns: weight // divisor for ns, weight in weights.items()}, len(trials)) if weights else None


def _quantiles(weights: Mapping[int, int], part_weight: float) -> list[int]:
    """Represent a weighted sample by quantiles at the middles of equal parts of weight ``part_weight``, ascending."""
    if len(weights) == 1:  # the usual case
        [(value, weight)] = weights.items()
        return [value] * max(1, round(weight / part_weight))
    law = Distribution(weights)
    count = max(1, round(law.size / part_weight))
    return [law.quantile((part + 0.5) / count) for part in range(count)]
