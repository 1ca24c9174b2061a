"""Recorded attempts in parts, each of which a counterfactual can take away."""

from __future__ import annotations

import copy
from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import accumulate, compress
from typing import NamedTuple

from costmodel.recording.breakdown import UNKNOWN
from costmodel.statistics.distribution import Distribution
from costmodel.training.run import TrainingRun
from costmodel.workload.attempts import Attempt
from costmodel.workload.pool import Pool, attempts


class Parts(NamedTuple):
    """Where the time of one attempt goes, in ns; the sum is what it held its worker for, think time of the training
    run's law apart."""

    trial: int
    weight: int
    pauses: int  # between its actions
    queued: int
    create: int
    ready: int
    preload: int
    dispatch: int
    slowdown: int
    contention: int
    harness: int
    work: int  # on the reference, where there is one
    other: int  # wrapper time, whole commands that cannot be split; of a failure, time that nothing accounts for
    think: int
    cleanup: int


class AttemptTimes(NamedTuple):
    """One attempt in one world, in ns."""

    ok: bool
    span: int  # from when its create is let through to its end
    queued: int  # of that, before there was a sandbox
    cleanup: int
    startup: int  # create and ready, which a sandbox of the warm pool saves


class Trials:
    """The attempts of a cell at the training run's length: those that succeed, and those that do not, the shortest
    first.

    In this order a random number means much the same attempt whatever the weights are.
    """

    def __init__(self, pool: Pool, training_run: TrainingRun, full_speed: float | None = None) -> None:
        """``full_speed`` is the share of the work that the reference takes for it; None: there is none."""
        plain = replace(training_run, think=None, think_correlation=0.0, include_cleanup=False)
        sample = sorted(attempts(pool, training_run.length, plain), key=lambda one: one.held_ns)
        self.successes = [_parts(one, pool, training_run, full_speed) for one in sample if one.ok]
        self.failures = [_parts(one, pool, training_run, full_speed) for one in sample if not one.ok]
        self.known = all(one.run_ns != UNKNOWN for one in sample if one.ok)
        if training_run.failure_rate is not None or training_run.failure_hazard is not None:
            self.failures = []
        self.count = len(pool.trials)

    @classmethod
    def of(cls, law: Distribution) -> Trials:
        """Successes that take as long as the law says, and nothing but command time."""
        trials = cls.__new__(cls)
        durations = enumerate(zip(law.values, law.counts, strict=True))
        trials.successes = [
            Parts(number, count, 0, 0, 0, 0, 0, 0, 0, 0, 0, ns, 0, 0, 0) for number, (ns, count) in durations
        ]
        trials.failures, trials.known, trials.count = [], True, len(law.values)
        return trials

    def stressed(self, share: int, factor: int) -> Trials:
        """The same trials where one attempt in ``share`` is ``factor`` times as long, think time of a law apart."""
        trials = copy.copy(self)
        trials.successes, trials.failures = (
            sorted(
                [
                    *(one._replace(weight=one.weight * (share - 1)) for one in parts),
                    *(Parts(*one[:3], *(factor * ns for ns in one[3:])) for one in parts),
                ],
                key=lambda one: sum(one[3:]),
            )
            for parts in (self.successes, self.failures)
        )
        return trials

    def weighted(self, times: Sequence[int]) -> tuple[list[int], list[int], float]:
        """With each trial ``times`` times: cumulative weights of both, and the share of attempts that fail."""
        ok, failed = (
            list(accumulate(one.weight * times[one.trial] for one in parts))
            for parts in (self.successes, self.failures)
        )
        bad = failed[-1] if failed else 0
        return ok, failed, bad / (bad + ok[-1]) if ok[-1] else 1.0


def timed(parts: Sequence[Parts], without: Container[str], factor: float, *, ok: bool = True) -> list[AttemptTimes]:
    """The attempts without these causes, or without ``think``; all but think time takes ``factor`` times as long.

    Think time of the training run's law is not in them.
    """
    kept = [cause not in without for cause in _CAUSES]
    queued, create, ready, *_ = kept
    cleaned, thinks = factor * ("cleanup" not in without), "think" not in without
    found = []
    for one in parts:
        moving = sum(compress(one[3:11], kept)) + one.work + one.other
        startup = one.create * create + one.ready * ready
        span = max(0, round(factor * moving)) + one.think * thinks
        queue, cleanup = round(factor * one.queued * queued), round(cleaned * one.cleanup)
        found.append(AttemptTimes(ok, span, queue, cleanup, round(factor * startup)))
    return found


_CAUSES = ("throttle", "create", "ready", "preload", "dispatch", "slowdown", "contention", "harness")
"""Whose parts stand side by side in ``Parts``, in this order."""


def _parts(attempt: Attempt, pool: Pool, training_run: TrainingRun, full_speed: float | None) -> Parts:
    measured = pool.trials[attempt.trial].measures
    create = min(measured.create_ns, attempt.cold_ns)
    ready = attempt.cold_ns - create
    preload = attempt.startup_ns - attempt.cold_ns
    known = attempt.run_ns != UNKNOWN
    useful = attempt.run_ns - attempt.contention_ns if known else 0
    work = useful if full_speed is None else round(useful * full_speed)
    told = attempt.startup_ns + attempt.dispatch_ns + attempt.unsplit_ns + attempt.think_ns + attempt.queued_ns
    told += attempt.wrapper_ns
    rest = attempt.held_ns - told - (attempt.run_ns if known else 0)
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
        contention=attempt.contention_ns if known else 0,
        harness=rest if attempt.ok else 0,
        work=work,
        other=attempt.unsplit_ns + attempt.wrapper_ns + (0 if attempt.ok else rest),
        think=0 if training_run.think is not None else attempt.think_ns,
        cleanup=measured.cleanup_ns or 0,
    )
