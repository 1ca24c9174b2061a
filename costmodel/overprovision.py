"""Steps that launch more rollouts than they keep: how long they last, whom they hold, what they are billed.

The rules. A step launches ``launched`` rollouts, which W workers take in turn, and ends when the first ``batch`` of
them are done. Whatever was launched holds its worker, and its sandbox runs on the provider's clock, until it is done
or the step ends, whichever is first; what no worker had begun by then holds nothing. What is done or cut beyond the
batch is thrown away. With partial rollouts it is carried into the next step instead, in its sandbox, and only what
the last step leaves over is thrown away.

More launches end a step sooner, never later. They cost worker-hours where durations vary less than exponentially, and
may save some where they vary more: then the straggler that is cut would have held its worker for longer than the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from heapq import heapreplace
from itertools import accumulate
from random import Random
from typing import Final, NamedTuple

from costmodel.distribution import Distribution
from costmodel.errors import DemandError
from costmodel.makespan import Makespan
from costmodel.uncertainty import student_t

STEP_DRAWS: Final = 400_000
"""Random attempts that a simulated step may cost."""
MAX_LAUNCHED: Final = 1_000_000


class Try(NamedTuple):
    """One attempt at a rollout, and how often it is drawn. ns."""

    weight: int
    ok: bool
    held_ns: int  # by the worker
    clock_ns: int  # the sandbox's, as the provider bills it


class Rollout(NamedTuple):
    """What keeps one worker busy until a rollout is done, or given up: its attempts, and the waits between them."""

    busy_ns: int
    tries: tuple[tuple[int, Try], ...]  # each with when it starts

    def clocks_ns(self, until_ns: int) -> list[int]:
        """How long each of its sandboxes has run for if it is cut at ``until_ns``; those begun by then."""
        begun = [(start, one) for start, one in self.tries if start < until_ns]
        return [max(0, one.clock_ns - max(0, start + one.held_ns - until_ns)) for start, one in begun]


class Rollouts:
    """Where random rollouts come from: attempts that fail independently, at most ``cap`` for one rollout."""

    def __init__(self, tries: Iterable[Try], cap: int | None = None, backoff_ns: int = 0) -> None:
        """At least one attempt, and one that succeeds unless there is a cap."""
        self._tries = list(tries)
        self._cumulative = list(accumulate(one.weight for one in self._tries))
        self._cap, self._backoff_ns = cap, backoff_ns
        self._at_once = [Rollout(one.held_ns, ((0, one),)) for one in self._tries]

    @classmethod
    def of(cls, law: Distribution) -> Rollouts:
        """Rollouts that succeed at once, and hold their sandbox as long as their worker."""
        pairs = zip(law.values, law.counts, strict=True)
        return cls(Try(weight, ok=True, held_ns=value, clock_ns=value) for value, weight in pairs)

    def draw(self, count: int, rng: Random) -> list[Rollout]:
        """That many."""
        numbers = rng.choices(range(len(self._tries)), cum_weights=self._cumulative, k=count)
        return [self._at_once[n] if self._tries[n].ok else self._retried(self._tries[n], rng) for n in numbers]

    def _retried(self, latest: Try, rng: Random) -> Rollout:
        tries, busy_ns = [(0, latest)], latest.held_ns
        while not latest.ok and (self._cap is None or len(tries) < self._cap):
            busy_ns += self._backoff_ns
            (latest,) = rng.choices(self._tries, cum_weights=self._cumulative)
            tries.append((busy_ns, latest))
            busy_ns += latest.held_ns
        return Rollout(busy_ns, tuple(tries))


class Usage(NamedTuple):
    """What launched rollouts take of the workers and of the provider; an expectation, hence fractions."""

    busy_ns: float  # worker time
    error_ns: float  # of that: half its 95 % interval
    wasted_ns: float  # of that, on rollouts that were thrown away
    sandboxes: dict[int, float]  # how many ran for how long on the provider's clock


def total(parts: Iterable[tuple[int, Usage]]) -> Usage:
    """What a run takes whose steps take this, each so many times over; their errors add up, as they are one."""
    busy_ns = error_ns = wasted_ns = 0.0
    sandboxes: dict[int, float] = {}
    for times, one in parts:
        busy_ns += times * one.busy_ns
        error_ns += times * one.error_ns
        wasted_ns += times * one.wasted_ns
        for ns, count in one.sandboxes.items():
            sandboxes[ns] = sandboxes.get(ns, 0.0) + times * count
    return Usage(busy_ns, error_ns, wasted_ns, sandboxes)


class TrainingStep(NamedTuple):
    """An over-provisioned step on average."""

    makespan: Makespan  # of its rollouts
    usage: Usage
    left: Usage  # once, after the last step: what partial rollouts had begun and nobody waits for


def over_provisioned(
    rollouts: Rollouts,
    batch: int,
    launched: int,
    workers: int,
    *,
    partial: bool,
    seed: int,
    no_sooner_ns: float = 0.0,
    attempts: float = 1.0,
) -> TrainingStep:
    """Launch more than the batch and stop when it is full, ``no_sooner_ns`` for a create rate's sake.

    Simulated job by job, the mean of seeded replicates (consecutive steps after a first one where work is carried);
    ``attempts`` is how many a rollout takes on average.

    Raises:
        DemandError: more than a million are launched.
    """
    if launched > MAX_LAUNCHED:
        raise DemandError(f"an over-provisioned step is simulated job by job, {launched} are more than {MAX_LAUNCHED}")
    rng = Random(seed)
    count = max(4, min(30, int(STEP_DRAWS / (launched * attempts))))
    steps: list[_Step] = []
    carried: list[_Job] = []
    for number in range(count + partial):
        fresh = [(rollout, 0) for rollout in rollouts.draw(launched - len(carried), rng)]
        step = _one_step([*carried, *fresh], batch, workers, round(no_sooner_ns))
        if partial:
            carried = step.beyond
        if number or not partial:
            steps.append(step)
    end_ns, end_error_ns = _mean([step.end_ns for step in steps])
    busy_ns, busy_error_ns = _mean([step.busy_ns for step in steps])
    beyond_ns = sum(ran for step in steps for _, ran in step.beyond) / count
    kept = Counter(ns for step in steps for rollout in step.kept for ns in rollout.clocks_ns(rollout.busy_ns + 1))
    cut = Counter(ns for step in steps for rollout, ran in step.beyond for ns in rollout.clocks_ns(max(1, ran)))
    method = "create-rate" if end_ns <= no_sooner_ns else "simulation"
    makespan = Makespan(end_ns, end_error_ns, method)
    if partial:
        left = Usage(beyond_ns, 0.0, beyond_ns, _each(cut, count))
        return TrainingStep(makespan, Usage(busy_ns, busy_error_ns, 0.0, _each(kept, count)), left)
    return TrainingStep(
        makespan, Usage(busy_ns, busy_error_ns, beyond_ns, _each(kept + cut, count)), Usage(0.0, 0.0, 0.0, {})
    )


def _each(found: Counter[int], steps: int) -> dict[int, float]:
    return {ns: times / steps for ns, times in found.items()}


def _mean(values: list[int]) -> tuple[float, float]:
    """The mean, and half its 95 % interval."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, student_t(len(values) - 1) * math.sqrt(variance / len(values))


_Job = tuple[Rollout, int]
"""A rollout, and for how long it has run."""


class _Step(NamedTuple):
    end_ns: int
    busy_ns: int
    kept: list[Rollout]
    beyond: list[_Job]  # begun, and not kept


def _one_step(jobs: list[_Job], batch: int, workers: int, no_sooner_ns: int) -> _Step:
    free = [0] * min(workers, len(jobs))  # a heap: when each worker is free
    spans: list[tuple[int, int, _Job]] = []
    for rollout, ran in jobs:
        start = free[0]
        done = start + rollout.busy_ns - ran
        heapreplace(free, done)
        spans.append((done, start, (rollout, ran)))
    spans.sort(key=lambda span: span[0])
    end = max(spans[batch - 1][0], no_sooner_ns)
    beyond = [(rollout, ran + min(done, end) - start) for done, start, (rollout, ran) in spans[batch:] if start < end]
    busy = sum(min(done, end) - start for done, start, _ in spans if start < end)
    return _Step(end, busy, [rollout for _, _, (rollout, _) in spans[:batch]], beyond)
