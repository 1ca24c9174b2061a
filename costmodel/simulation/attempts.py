"""Attempts of a training run: the time of each by cause, retries, and suspended time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Sequence
from fractions import Fraction
from itertools import accumulate, compress
from random import Random
from typing import Final, NamedTuple

from costmodel.recording.breakdown import UNKNOWN
from costmodel.recording.causes import DROPPED
from costmodel.statistics.distribution import ROOT, Distribution
from costmodel.training.run import Suspension, Think, TrainingRun
from costmodel.workload.attempts import Attempt
from costmodel.workload.pool import Pool, versions


class Parts(NamedTuple):
    """The time of one attempt by cause, in ns. The sum is its occupied time, without the training run's think time."""

    trial: int
    weight: int
    pauses: int  # between its actions
    dropped: bool  # a failure whose cause is not retried
    queued: int
    create: int
    ready: int
    preload: int
    dispatch: int
    slowdown: int
    contention: int
    harness: int
    work: int  # on the reference, if any
    unexplained: int  # wrapper time and undivided actions; of a failure, unexplained time
    think: int
    cleanup: int


class AttemptTimes(NamedTuple):
    """An attempt under one random stream, in ns."""

    ok: bool | None  # None: a failure without a retry
    span: int  # from the grant of its create to its end
    queued: int  # before the start of its sandbox; part of the span
    cleanup: int
    startup: int  # create and ready, saved by a pool sandbox
    suspended: int = 0  # of the span; the sandbox is not billed as usual meanwhile


class Trials:
    """The attempts of a cell at the training run's length: successes and failures, each by ascending time.

    With this order a random number selects a similar attempt whatever the weights are.
    """

    def __init__(self, pool: Pool, training_run: TrainingRun, full_speed: float | None = None) -> None:
        """``full_speed``: share of the command time that the reference needs; None: no reference."""
        sample = versions(pool, training_run.length, training_run.precision.seed)
        sample.sort(key=lambda attempt: attempt.held_ns)
        self.successes = [_parts(attempt, pool, training_run, full_speed) for attempt in sample if attempt.ok]
        self.failures = [_parts(attempt, pool, training_run, full_speed) for attempt in sample if not attempt.ok]
        self.run_known = all(attempt.run_ns != UNKNOWN for attempt in sample if attempt.ok)
        if training_run.failure_rate is not None or training_run.failure_hazard is not None:
            self.failures = []

    def weighted(self, times: Sequence[int] | None = None) -> tuple[list[int], list[int], float]:
        """Return cumulative weights of both, and the share of failed attempts. ``times``: copies of each trial."""
        ok, failed = (
            list(accumulate(attempt.weight * (1 if times is None else times[attempt.trial]) for attempt in parts))
            for parts in (self.successes, self.failures)
        )
        bad = failed[-1] if failed else 0
        return ok, failed, bad / (bad + ok[-1]) if ok[-1] else 1.0


def timed(
    parts: Sequence[Parts], without: Container[str], factor: float, fork_ns: int | None = None, *, ok: bool = True
) -> list[AttemptTimes]:
    """The attempts without these causes, or without ``think``; all but think time takes ``factor`` times as long.

    Think time of the training run's law is not in them. ``fork_ns`` replaces create, ready and preload.
    """
    if fork_ns is not None:
        parts = [attempt._replace(create=fork_ns, ready=0, preload=0) for attempt in parts]
    present = [cause not in without for cause in _CAUSES]
    queued, create, ready, *_ = present
    cleaned, thinks = factor * ("cleanup" not in without), "think" not in without
    times = []
    for attempt in parts:
        moving = sum(compress(attempt[4:12], present)) + attempt.work + attempt.unexplained
        startup = attempt.create * create + attempt.ready * ready
        span = max(0, round(factor * moving)) + attempt.think * thinks
        queue, cleanup = round(factor * attempt.queued * queued), round(cleaned * attempt.cleanup)
        times.append(AttemptTimes(ok, span, queue, cleanup, round(factor * startup)))
    return times


_CAUSES = ("throttle", "create", "ready", "preload", "dispatch", "slowdown", "contention", "harness")
"""Fields of ``Parts`` in this order."""


def _parts(attempt: Attempt, pool: Pool, training_run: TrainingRun, full_speed: float | None) -> Parts:
    trial = pool.trials[attempt.trial]
    measured = trial.measures
    create = min(measured.create_ns, attempt.cold_ns)
    ready = attempt.cold_ns - create
    preload = attempt.startup_ns - attempt.cold_ns
    separated = attempt.run_ns != UNKNOWN
    useful = attempt.run_ns - attempt.contention_ns if separated else 0
    work = useful if full_speed is None else round(useful * full_speed)
    attributed_ns = attempt.startup_ns + attempt.dispatch_ns + attempt.unsplit_ns + attempt.think_ns + attempt.queued_ns
    attributed_ns += attempt.wrapper_ns
    rest = attempt.held_ns - attributed_ns - (attempt.run_ns if separated else 0)
    return Parts(
        trial=attempt.trial,
        weight=attempt.weight,
        pauses=max(0, attempt.actions - 1),
        queued=0 if training_run.create_rate is not None else attempt.queued_ns,
        create=create,
        ready=ready,
        preload=preload,
        dispatch=attempt.dispatch_ns,
        slowdown=useful - work,
        contention=attempt.contention_ns if separated else 0,
        harness=rest if attempt.ok else 0,
        work=work,
        unexplained=attempt.unsplit_ns + attempt.wrapper_ns + (0 if attempt.ok else rest),
        think=0 if training_run.think is not None else attempt.think_ns,
        cleanup=measured.cleanup_ns or 0,
        dropped=not attempt.ok and trial.treatment == DROPPED,
    )


CHAINS: Final = 2_000
"""Simulated trajectories for the distribution of failures before a success."""


class Retries(NamedTuple):
    """Independent attempts with the same probability of failure, at most ``cap`` per trajectory."""

    failure: Fraction  # with a retry; below 1
    cap: int | None
    simulated: Fraction | None = None  # attempts per trajectory, if failures are correlated
    success: Fraction = Fraction(1)  # share of the other attempts; the rest fails without a retry

    @property
    def delivered(self) -> Fraction:
        """Share of trajectories with a final success: (1 − f^cap) · success."""
        return self.attempts * (1 - self.failure) * self.success

    @property
    def attempts(self) -> Fraction:
        """Expected attempts per trajectory: (1 − f^cap) / (1 − f)."""
        if self.simulated is not None:
            return self.simulated
        if self.cap is None:
            return 1 / (1 - self.failure)
        all_fail = self.failure**self.cap if self.cap <= 64 else Fraction(float(self.failure) ** self.cap)
        return (1 - all_fail) / (1 - self.failure)


def with_retries(
    last: Distribution, failure: Distribution | None, retries: Retries, backoff_ns: int, rng: Random
) -> Distribution:
    """Return the distribution of a worker's busy time per trajectory, with failed attempts and back-off.

    ``last``: of attempts that are not retried. Made from stratified quantiles, and scaled to the exact mean.
    """
    if failure is None or not retries.failure:
        return last
    places = [(stratum + 0.5) / CHAINS for stratum in range(CHAINS)]
    ranks = places.copy()
    rng.shuffle(places)
    chain = _chain(last, failure, retries, backoff_ns, rng)
    law = Distribution(Counter(map(chain, ranks, places)), last.trials)
    failed = retries.attempts * retries.failure
    exact = (
        (retries.attempts - failed) * Fraction(last.total, last.size)
        + failed * Fraction(failure.total, failure.size)
        + (retries.attempts - 1) * backoff_ns
    )
    ratio = (exact * law.size / law.total).limit_denominator(10**12) if law.total else Fraction(1)
    return law.scaled(ratio.numerator, ratio.denominator)


def chained(
    last: Distribution, failure: Distribution, retries: Retries, backoff_ns: int, jobs: int, rng: Random
) -> list[int]:
    """Draw the busy times of a worker for so many trajectories, with failed attempts and back-off."""
    random, chain = rng.random, _chain(last, failure, retries, backoff_ns, rng)
    return [chain(1 - random(), random()) for _ in range(jobs)]


def _chain(
    last: Distribution, failure: Distribution, retries: Retries, backoff_ns: int, rng: Random
) -> Callable[[float, float], int]:
    """Return the busy time of a trajectory from the quantile of its failures and the quantile of its last attempt."""
    scale, longest = math.log(float(retries.failure)), math.inf if retries.cap is None else retries.cap

    def busy_ns(rank: float, place: float) -> int:
        failures = int(min(math.log(rank) / scale, longest))
        busy = sum(rng.choices(failure.values, cum_weights=failure.cumulative, k=failures)) if failures else 0
        busy += backoff_ns * int(min(failures, longest - 1))
        return busy + last.quantile(place) if failures < longest else busy

    return busy_ns


def suspended_parts(think: Think, pauses: int, suspension: Suspension, sums: Sequence[int]) -> list[tuple[int, int]]:
    """Return the delay and the suspended time of each sum of pauses, in ns.

    The delay is the mean of as many pauses; the suspended time is the mean share of model time. Both means are the
    lognormal's partial expectations.
    """

    def above(limit: float) -> tuple[float, float]:  # probability of a longer pause, and its part of the mean
        if limit <= 0 or not think.sigma or not think.median_ns:
            longer = think.median_ns > limit
            return float(longer), think.mean_ns * longer
        z = math.log(limit / think.median_ns) / think.sigma
        return 0.5 * math.erfc(z / ROOT), think.mean_ns * 0.5 * math.erfc((z - think.sigma) / ROOT)

    awake = suspension.after_ns + suspension.suspend_ns
    (chance, part), (late_chance, late) = above(suspension.after_ns), above(awake)
    early = awake * (chance - late_chance) - (part - late)  # pauses that end before the suspension is complete
    delay, suspended = suspension.resume_ns * chance + early, late - awake * late_chance
    share = suspended / (think.mean_ns or 1.0)
    return [(round(pauses * delay), round(whole * share)) for whole in sums]
