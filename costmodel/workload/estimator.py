"""Weighted sums over the attempts of one cell, as totals and by trial."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from operator import eq, mul
from typing import NamedTuple

from costmodel.recording.trial import RecordedTrial, origins_of
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval, quantile
from costmodel.statistics.quantiles import Percentile, percentile, percentile_with_runs, worth_by_value
from costmodel.statistics.repetitions import WITHIN_ONLY, Assumed, Estimate, Origin, RunKey, estimate, interval
from costmodel.workload.attempts import Attempt, Sample

Value = Callable[[Sample], Sequence[int]]
"""A column of whole numbers, one for each attempt."""

MAX_VERSIONS = 1_000
"""Of one trial, that its percentiles are told from: more are as many quantiles of their law."""


class StraightLine(NamedTuple):
    """held(n) ≈ fixed + n · per_action, with the variances and the covariance of the two means."""

    fixed_s: float
    per_action_s: float
    var_fixed_s2: float
    var_per_action_s2: float
    covariance_s2: float


class Tally:
    """The attempts at one length. A quantity "per success" is its sum over all attempts by the successes."""

    def __init__(
        self, attempts: Sequence[Attempt], trials: Sequence[RecordedTrial], assume: Assumed = WITHIN_ONLY
    ) -> None:
        """Attempts of ``trials``, each of which has the same total weight; ``assume`` is for one run or two."""
        self.attempts = sample = Sample.of(attempts)
        self.trials = trials
        self.assume = assume
        self._origins: list[Origin] = origins_of(trials)
        self.weight = Fraction(sum(sample.weight), len(trials) or 1)  # of one trial
        self._one_each = len(sample) == len(trials) and all(map(eq, sample.trial, range(len(trials))))
        self._plain = self._one_each and all(map((1).__eq__, sample.weight))
        self._ok = self.by_trial(lambda sample: sample.ok)
        self._estimates: list[tuple[Sequence[int], Estimate]] = []
        self.successes = Fraction(sum(self._ok)) / self.weight if attempts else Fraction(0)

    def by_trial(self, value: Value) -> Sequence[int]:
        """Weighted sums of ``value``, one per trial."""
        column, sample = value(self.attempts), self.attempts
        if self._plain:
            return column
        weighted = map(mul, sample.weight, column)
        if self._one_each:
            return list(weighted)
        sums = [0] * len(self.trials)
        for trial, amount in zip(sample.trial, weighted, strict=True):
            sums[trial] += amount
        return sums

    def total(self, value: Value) -> Fraction:
        """The sum over trials, each version of a trial by its share."""
        return Fraction(sum(self.by_trial(value))) / self.weight

    def estimate(self, value: Value, idle: Value | None = None) -> Estimate:
        """Σ value over all attempts / successes; ``idle`` is the part of each value that no run can change."""
        still = 0.0 if idle is None else float(self.total(idle) / self.successes)
        column = self.by_trial(value)
        # A trajectory is what was held, where nobody thought, waited or failed.
        for other, found in self._estimates:
            if all(map(eq, column, other)):
                return found._replace(moving=abs(found.value - still))
        found = estimate(column, self._ok, self._origins, still)
        self._estimates.append((column, found))
        return found

    def per_success(self, value: Value, idle: Value | None = None) -> Interval:
        """The same with its interval, over trials and over runs."""
        return interval(self.estimate(value, idle), self.assume)

    def of_successes(self, value: Value) -> Interval:
        """The mean of ``value`` over successes alone, with its interval."""
        return self.per_success(lambda sample: sample.of_successes(value(sample)))

    def percentiles(self, ps: Sequence[float]) -> list[Percentile]:
        """Of the trajectories of successes, in ns, with how much runs differ; each ``needs`` so many trials.

        Versions of a trial are one in worth.
        """
        runs = self._successes_by_run()
        trials = sum(map(len, runs))
        ascending = sorted(chain.from_iterable(chain.from_iterable(runs)))

        worth_at = worth_by_value(runs)

        def at(p: float) -> Percentile:
            found = percentile(ascending, p, min(trials, worth_at(quantile(ascending, p))))
            needs_trials = -(-found.needs * trials // len(ascending))
            return percentile_with_runs(found._replace(needs=needs_trials), p, runs, self.assume)

        return list(map(at, ps))

    def _successes_by_run(self) -> list[list[list[int]]]:
        """The trajectories of each run's successful trials, those of a trial's versions by their worth."""
        by_run: dict[RunKey, list[list[int]]] = {}
        sample = self.attempts
        if self._plain:
            for (run, _), ok, value in zip(self._origins, sample.ok, sample.trajectory_ns, strict=True):
                if ok:
                    by_run.setdefault(run, []).append([value])
            return list(by_run.values())
        versions: dict[int, dict[int, int]] = {}
        for trial, ok, value, weight in zip(sample.trial, sample.ok, sample.trajectory_ns, sample.weight, strict=True):
            if ok:
                own = versions.setdefault(trial, {})
                own[value] = own.get(value, 0) + weight
        divisor = math.gcd(*(weight for own in versions.values() for weight in own.values()))
        most = max((sum(own.values()) // divisor for own in versions.values()), default=0)
        for trial, own in sorted(versions.items()):
            told = _told(own, divisor if most <= MAX_VERSIONS else most * divisor / MAX_VERSIONS)
            by_run.setdefault(self._origins[trial][0], []).append(told)
        return list(by_run.values())

    @property
    def failure(self) -> Fraction:
        """The share of attempts that fail."""
        return 1 - self.successes / len(self.trials)

    @cached_property
    def run_known(self) -> bool:
        """Whether the time inside the sandbox is known for every success."""
        return self.attempts.run_known

    def held_times(self, ok: bool) -> Distribution | None:
        """How long successes, or failures, hold their worker; None if there are none."""
        sample = self.attempts
        if self._plain:
            if ok and sample.all_ok:
                weights = Counter(sample.held_ns)
            else:
                weights = Counter(
                    [held for held, own in zip(sample.held_ns, sample.ok, strict=True) if bool(own) == ok]
                )
            return _reduced(weights, weights.total()) if weights else None
        weights, seen = Counter(), set()
        for trial, own, held, weight in zip(sample.trial, sample.ok, sample.held_ns, sample.weight, strict=True):
            if bool(own) == ok:
                weights[held] += weight
                seen.add(trial)
        return _reduced(weights, len(seen)) if weights else None

    def line(self) -> StraightLine | None:
        """The straight line through the successes' fixed and per-action time; None with fewer than 3."""
        whole = self.by_trial(lambda sample: sample.of_successes(sample.held_ns))
        moving = self.by_trial(lambda sample: sample.of_successes(sample.commands_ns))
        steps = self.by_trial(lambda sample: sample.of_successes(sample.actions))
        columns = whole, moving, self._ok, steps
        fixed = array(
            "d", [(own - slope) / weight / 1e9 for own, slope, weight, count in zip(*columns, strict=True) if count]
        )
        slopes = array("d", [slope / count / 1e9 for _, slope, _, count in zip(*columns, strict=True) if count])
        count = len(fixed)
        if count < 3:
            return None
        means = [math.fsum(column) / count for column in (fixed, slopes)]
        off = [array("d", [value - mean for value in own]) for own, mean in zip((fixed, slopes), means, strict=True)]
        var_fixed, var_slope, covariance = (
            math.fsum(map(mul, off[i], off[j])) / (count - 1) / count for i, j in ((0, 0), (1, 1), (0, 1))
        )
        return StraightLine(means[0], means[1], var_fixed, var_slope, covariance)


def _told(own: Mapping[int, int], each: float) -> list[int]:
    """Values for which ``each`` so much weight stands: the middles of as many equal parts, ascending."""
    if len(own) == 1:  # as of nearly every trial
        [(value, weight)] = own.items()
        return [value] * max(1, round(weight / each))
    law = Distribution(own)
    count = max(1, round(law.size / each))
    return [law.quantile((part + 0.5) / count) for part in range(count)]


def _reduced(weights: Counter[int], trials: int) -> Distribution:
    """The law with the smallest whole weights: small ones can be drawn from faster."""
    divisor = math.gcd(*weights.values())
    return Distribution({value: weight // divisor for value, weight in weights.items()}, trials)
