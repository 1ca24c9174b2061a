"""What stands between one attempt and a trajectory that is delivered: retries, and how fast sandboxes are created."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Final, NamedTuple

from costmodel.statistics.distribution import Distribution

CHAINS: Final = 2_000
"""Trajectories from which the law of "failures, then a success" is put together."""


class Retries(NamedTuple):
    """Attempts that fail independently with the same probability, at most ``cap`` of them."""

    failure: Fraction  # below 1
    cap: int | None
    simulated: Fraction | None = None  # attempts per trajectory, where they do not fail independently

    @property
    def delivered(self) -> Fraction:
        """The share of trajectories that succeed in the end: 1 − f^cap."""
        return self.attempts * (1 - self.failure)

    @property
    def attempts(self) -> Fraction:
        """Expected attempts per trajectory: (1 − f^cap) / (1 − f)."""
        if self.simulated is not None:
            return self.simulated
        return (1 - self._all_fail) / (1 - self.failure)

    @property
    def _all_fail(self) -> Fraction:
        if self.cap is None:
            return Fraction(0)
        return self.failure**self.cap if self.cap <= 64 else Fraction(float(self.failure) ** self.cap)


def with_retries(
    success: Distribution, failure: Distribution | None, retries: Retries, backoff_ns: int, rng: Random
) -> Distribution:
    """The law of how long one worker is busy with one trajectory, failed attempts and waits included.

    Put together from stratified quantiles and scaled, so that its mean is the exact one.
    """
    if failure is None or not retries.failure:
        return success
    scale = math.log(float(retries.failure))
    longest = retries.cap if retries.cap is not None else math.inf
    strata = list(range(CHAINS))
    rng.shuffle(strata)
    weights: Counter[int] = Counter()
    for number, stratum in enumerate(strata):
        failures = min(int(math.log((number + 0.5) / CHAINS) / scale), longest)
        busy = int(
            sum(rng.choices(failure.values, cum_weights=failure.cumulative, k=int(failures)))
        ) + backoff_ns * int(min(failures, longest - 1))
        if failures < longest:
            index = (2 * stratum + 1) * success.size // (2 * CHAINS)
            busy += success.values[bisect_right(success.cumulative, index)]
        weights[busy] += 1
    chained = Distribution(weights, success.trials)
    retried = retries.attempts - 1
    exact = (
        retries.delivered * Fraction(success.total, success.size)
        + (retries.attempts - retries.delivered) * Fraction(failure.total, failure.size)
        + retried * backoff_ns
    )
    ratio = (exact * chained.size / chained.total).limit_denominator(10**12) if chained.total else Fraction(1)
    return chained.scaled(ratio.numerator, ratio.denominator)


@lru_cache(maxsize=32)
def retried(
    success: Distribution, failure: Distribution | None, retries: Retries, backoff_ns: int, seed: int
) -> Distribution:
    """As ``with_retries`` by this seed, remembered: each point of a curve over workers asks for the same."""
    return with_retries(success, failure, retries, backoff_ns, Random(seed))


def throttle_floor_ns(creates: float, rate: float, burst: int) -> float:
    """When the last of ``creates`` sandboxes is let through at the earliest, at ``rate`` per second after ``burst``."""
    return max(0.0, creates - burst) / rate * 1e9


def effective_workers(workers: int, rate: float | None, busy_ns: float) -> float:
    """How many workers a create rate can keep busy if each create does so for this long (Little's law)."""
    return workers if rate is None else min(workers, rate * busy_ns / 1e9)
