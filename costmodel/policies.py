"""What stands between one job's duration and a training run's wall-clock: retries, throttles, barriers, trainers."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from heapq import heapify, heapreplace
from random import Random
from typing import Final, NamedTuple

from costmodel.demand import Policy
from costmodel.errors import DemandError
from costmodel.law import Law
from costmodel.simulation import drawer
from costmodel.statistics import student_t

CHAINS: Final = 2_000
"""Trajectories from which the law of "failures, then a success" is put together."""
STEP_DRAWS: Final = 400_000
"""Random durations that a simulated over-provisioned step may cost."""
MAX_LAUNCHED: Final = 1_000_000


class Retries(NamedTuple):
    """Attempts that fail independently with the same probability, at most ``cap`` of them."""

    failure: Fraction  # below 1
    cap: int | None

    @property
    def delivered(self) -> Fraction:
        """The share of trajectories that succeed in the end: 1 − f^cap."""
        return 1 - self._all_fail

    @property
    def attempts(self) -> Fraction:
        """Expected attempts per trajectory: (1 − f^cap) / (1 − f)."""
        return (1 - self._all_fail) / (1 - self.failure)

    @property
    def _all_fail(self) -> Fraction:
        if self.cap is None:
            return Fraction(0)
        return self.failure**self.cap if self.cap <= 64 else Fraction(float(self.failure) ** self.cap)


def with_retries(success: Law, failure: Law | None, retries: Retries, backoff_ns: int, rng: Random) -> Law:
    """The law of how long one worker is busy with one trajectory, failed attempts and waits included.

    Put together from stratified quantiles and scaled, so that its mean is the exact one.
    """
    if failure is None or not retries.failure:
        return success
    chance = float(retries.failure)
    longest = retries.cap if retries.cap is not None else math.inf
    strata = list(range(CHAINS))
    rng.shuffle(strata)
    draw = drawer(failure, rng)
    weights: Counter[int] = Counter()
    for number, stratum in enumerate(strata):
        failures = min(int(math.log((number + 0.5) / CHAINS) / math.log(chance)), longest)
        busy = int(sum(draw(int(failures)))) + backoff_ns * int(min(failures, longest - 1))
        if failures < longest:
            index = (2 * stratum + 1) * success.size // (2 * CHAINS)
            busy += _at(success, index)
        weights[busy] += 1
    chained = Law(weights)
    retried = retries.attempts - 1
    exact = (
        retries.delivered * Fraction(success.total, success.size)
        + (retries.attempts - retries.delivered) * Fraction(failure.total, failure.size)
        + retried * backoff_ns
    )
    ratio = (exact * chained.size / chained.total).limit_denominator(10**12) if chained.total else Fraction(1)
    return chained.scaled(ratio.numerator, ratio.denominator)


def _at(law: Law, index: int) -> int:
    """The ``index``-th smallest of the law's sample."""
    low, high = 0, len(law.values) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if law.cumulative[middle] > index else (middle + 1, high)
    return law.values[low]


def throttle_floor_ns(creates: float, rate: float, burst: int, mean_ns: float) -> float:
    """When the last of ``creates`` sandboxes ends if they are handed out at ``rate`` per second after ``burst``."""
    return max(0.0, creates - burst) / rate * 1e9 + mean_ns


def effective_workers(workers: int, rate: float | None, mean_ns: float) -> float:
    """How many workers a create rate can keep busy (Little's law)."""
    return workers if rate is None else min(workers, rate * mean_ns / 1e9)


def wall_ns(policy: Policy, steps_ns: list[tuple[int, float]], whole_ns: float, train_ns: float) -> float:
    """Wall-clock of a run whose steps need rollouts of the given durations (count, ns each), and training each.

    sync: rollouts and training take turns. one-step-off: the next step's rollouts run during training.
    async: rollouts never wait (``whole_ns`` is their one makespan), training does if it must.
    """
    count = sum(times for times, _ in steps_ns)
    if not count:
        return 0.0
    if policy == "sync":
        return sum(times * (step + train_ns) for times, step in steps_ns)
    if policy == "one-step-off":
        first = steps_ns[0][1]
        return sum(times * max(step, train_ns) for times, step in steps_ns) - max(first, train_ns) + first + train_ns
    return max(whole_ns, whole_ns / count + (count - 1) * train_ns) + train_ns


class Step(NamedTuple):
    """The rollouts of one step on average: how long, how sure, and what the workers did. All ns."""

    value_ns: float
    error_ns: float
    busy_ns: float
    wasted_ns: float  # of that, on rollouts that were thrown away
    method: str


def over_provisioned(law: Law, batch: int, launched: int, workers: int, partial: bool, seed: int) -> Step:
    """Launch more than the batch and stop when it is full; ``partial`` carries the unfinished on.

    Simulated job by job, the mean of seeded replicates (consecutive steps after a first one where work is carried).

    Raises:
        DemandError: more than a million are launched.
    """
    if launched > MAX_LAUNCHED:
        raise DemandError(f"an over-provisioned step is simulated job by job, {launched} are more than {MAX_LAUNCHED}")
    rng = Random(seed)
    draw = drawer(law, rng)
    steps: list[_Step] = []
    carried: list[int] = []
    count = max(4, min(30, STEP_DRAWS // launched))
    for number in range(count + partial):
        jobs = [*carried, *map(int, draw(launched - len(carried)))]
        step = _one_step(jobs, batch, workers)
        if partial:
            carried = step.unfinished
        if number or not partial:
            steps.append(step)
    mean = sum(step.end_ns for step in steps) / count
    variance = sum((step.end_ns - mean) ** 2 for step in steps) / (count - 1)
    busy = sum(step.busy_ns for step in steps) / count
    wasted = 0.0 if partial else sum(step.busy_unfinished_ns for step in steps) / count
    return Step(mean, student_t(count - 1) * math.sqrt(variance / count), busy, wasted, "simulation")


class _Step(NamedTuple):
    end_ns: int
    busy_ns: int
    busy_unfinished_ns: int
    unfinished: list[int]  # what is left of the jobs that had started, none of them done


def _one_step(jobs: list[int], batch: int, workers: int) -> _Step:
    ends = jobs[:workers]
    heapify(ends)
    finished = [(job, 0) for job in jobs[:workers]]
    for job in jobs[workers:]:
        start = ends[0]
        heapreplace(ends, start + job)
        finished.append((start + job, start))
    end = sorted(done for done, _ in finished)[batch - 1]
    cut = [(done, start) for done, start in finished if done > end > start]
    busy_done = sum(done - start for done, start in finished if done <= end)
    busy_cut = sum(end - start for _, start in cut)
    return _Step(end, busy_done + busy_cut, busy_cut, [done - end for done, _ in cut])
