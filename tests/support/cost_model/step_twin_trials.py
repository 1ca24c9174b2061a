"""What the step model's twin is asked, and what one attempt draws: a trial, its think time, its failure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from statistics import NormalDist
from typing import Final

POINTS: Final = 1 << 15
"""Of a lattice that the sum of several pauses is integrated over."""


@dataclass(frozen=True)
class StepTrial:
    """A recorded attempt, in seconds."""

    ok: bool
    create_s: float
    ready_s: float
    preload_s: float
    commands_s: tuple[tuple[float, float], ...]  # of each: submitted to returned, and inside the sandbox
    gap_s: float  # the harness's own time before each
    cleanup_s: float


@dataclass(frozen=True, kw_only=True)
class StepAsked:
    """A training run, in seconds and GB."""

    trials: Sequence[StepTrial]
    rollouts: int
    workers: int
    batch: int
    group: int | None = None
    quota: int | None = None
    policy: str = "sync"  # sync, one-step-off or async
    staleness: int | None = None
    train_s: float = 0.0
    over: float = 0.0
    rate: float | None = None
    burst: int = 1
    pool: int | None = None
    refill_s: float | None = None
    refill_rate: float | None = None
    nodes: int | None = None
    pods: int = 0  # of each node
    images: tuple[float, ...] = ()  # GB
    disk_gb: float = math.inf
    pull_gb_s: float = math.inf
    placement: str = "spread"  # spread, colocated or prepulled
    failure_rate: float | None = None
    failure_hazard: float | None = None
    on_failure: str = "retry"  # retry, mask, resample or keep
    max_attempts: int | None = None
    backoff_s: float = 0.0
    timeout_s: float | None = None
    think: tuple[float, float] | None = None  # median, sigma
    correlation: float = 0.0
    include_cleanup: bool = False
    suspend: tuple[float, float, float] | None = None  # threshold, time to suspend, time to resume
    fork_s: float | None = None
    recycle_s: float | None = None
    build_s: float = 0.0
    builders: int | None = None
    without: frozenset[str] = frozenset()  # causes that are taken away

    @property
    def limits(self) -> tuple[float | None, int | None]:
        """Create rate and quota, as far as they are not taken away."""
        return (None, None) if "throttle" in self.without else (self.rate, self.quota)

    @property
    def workers_started(self) -> int:
        """Workers that ever start: pods are a quota like any other."""
        pods = math.inf if self.nodes is None else self.nodes * self.pods
        return int(min(self.workers, self.limits[1] or math.inf, pods))

    @property
    def image_pool(self) -> bool:
        """Whether each prompt has ready sandboxes of its own."""
        return self.pool is not None and self.refill_s is None and self.refill_rate is None

    @property
    def everywhere(self) -> bool:
        """Whether every node holds every image."""
        return self.placement == "prepulled" or "image_pull" in self.without


@dataclass(frozen=True)
class Worked:
    """One attempt as drawn."""

    ok: bool
    start_s: float  # create and ready
    work_s: float  # the rest, up to the end of the last action
    cleanup_s: float
    suspended_s: float = 0.0  # of the work

    def fails_s(self, asked: StepAsked, rng: Random, length: float) -> float:
        """When it fails by what is asked for, from the beginning of create; never is infinity."""
        chance, part = rng.random(), rng.random()
        if "failures" in asked.without:
            return math.inf
        if asked.failure_rate is not None:
            return part * length if chance < asked.failure_rate else math.inf
        if asked.failure_hazard:
            return -math.log(1 - chance) * 3600 / asked.failure_hazard
        return math.inf


def draw_trial(asked: StepAsked, rng: Random, shared: float) -> Worked:
    """One of the recorded ones, with a think time of its own; ``shared`` is the prompt's standard normal number."""
    asks_failures = asked.failure_rate is not None or asked.failure_hazard is not None or "failures" in asked.without
    one = rng.choice([trial for trial in asked.trials if trial.ok or not asks_failures])

    def kept(cause: str, seconds: float) -> float:
        return 0.0 if cause in asked.without else seconds

    commands = sum(run if "dispatch" in asked.without else taken for taken, run in one.commands_s)
    gaps = kept("harness", one.gap_s * len(one.commands_s))
    start_s, preload_s = kept("create", one.create_s) + kept("ready", one.ready_s), kept("preload", one.preload_s)
    if asked.fork_s is not None:
        start_s, preload_s = asked.fork_s, 0.0
    thinks_s, suspended_s = _thinks(asked, rng, shared, len(one.commands_s) - 1), 0.0
    if asked.suspend is not None and asked.think is not None:
        thinks_s, suspended_s = _suspended(asked.think, asked.suspend, rng, len(one.commands_s) - 1)
    work_s = preload_s + commands + gaps + thinks_s
    return Worked(one.ok, start_s, work_s, kept("cleanup", one.cleanup_s), suspended_s)


def _suspended(
    think: tuple[float, float], suspend: tuple[float, float, float], rng: Random, pauses: int
) -> tuple[float, float]:
    """Pause by pause: how long all of them last until the next action starts, and how long the sandbox sleeps."""
    lasts = sleeps = 0.0
    for _ in range(pauses):
        answer = think[0] * math.exp(think[1] * rng.gauss(0, 1))
        if answer <= suspend[0]:
            lasts += answer
            continue
        asleep_at = suspend[0] + suspend[1]
        woken_at = max(answer, asleep_at)
        sleeps += woken_at - asleep_at
        lasts += woken_at + suspend[2]
    return lasts, sleeps


def _thinks(asked: StepAsked, rng: Random, shared: float, pauses: int) -> float:
    if asked.think is None or pauses < 1:
        return 0.0
    median, sigma = asked.think
    if not asked.correlation:
        return sum(median * math.exp(sigma * rng.gauss(0, 1)) for _ in range(pauses))
    mixed = math.sqrt(asked.correlation) * shared + math.sqrt(1 - asked.correlation) * rng.gauss(0, 1)
    sums = _sums(pauses, sigma)
    return median * sums[min(POINTS - 1, int(NormalDist().cdf(mixed) * POINTS))]


@cache
def _sums(pauses: int, sigma: float) -> list[float]:
    """Sums of so many lognormal pauses of median 1 over a lattice of their cube, ascending: the law's quantiles."""
    steps = [math.fmod(math.sqrt(prime), 1) for prime in (2, 3, 5, 7, 11, 13)][:pauses]
    law = NormalDist()
    return sorted(
        sum(math.exp(sigma * law.inv_cdf(((point + 0.5) * step) % 1 or 0.5)) for step in steps)
        for point in range(POINTS)
    )
