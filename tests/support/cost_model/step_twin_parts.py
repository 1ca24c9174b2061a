"""What the step model's twin is asked, what an attempt draws, and where it stands in line for tokens, pods, a pool."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from statistics import NormalDist
from typing import Any, Final

import simpy

POINTS: Final = 1 << 15
"""Of a lattice that the sum of several pauses is integrated over."""


@dataclass(frozen=True)
class StepTrial:
    ok: bool
    create_s: float
    ready_s: float
    preload_s: float
    commands_s: tuple[tuple[float, float], ...]  # of each: submitted to returned, and inside the sandbox
    gap_s: float  # the harness's own time before each
    cleanup_s: float


@dataclass(frozen=True, kw_only=True)
class StepAsked:
    trials: Sequence[StepTrial]
    trajectories: int
    workers: int
    batch: int
    group_size: int | None = None
    quota: int | None = None
    policy: str = "sync"  # sync, one-step-off or async
    staleness: int | None = None
    train_s: float = 0.0
    over_provision: float = 0.0
    create_rate: float | None = None
    create_burst: int = 1
    warm_pool: int | None = None
    refill_s: float | None = None
    refill_rate: float | None = None
    nodes: int | None = None
    pods_per_node: int = 0  # of each node
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
    think_correlation: float = 0.0
    include_cleanup: bool = False
    suspend: tuple[float, float, float] | None = None  # threshold, time to suspend, time to resume
    fork_s: float | None = None
    recycle_s: float | None = None
    build_s: float = 0.0
    builders: int | None = None
    without: frozenset[str] = frozenset()  # causes that are taken away

    @property
    def limits(self) -> tuple[float | None, int | None]:
        return (None, None) if "throttle" in self.without else (self.create_rate, self.quota)

    @property
    def workers_started(self) -> int:
        """Workers that ever start: pods are a quota like any other."""
        pods = math.inf if self.nodes is None else self.nodes * self.pods_per_node
        return int(min(self.workers, self.limits[1] or math.inf, pods))

    @property
    def image_pool(self) -> bool:
        return self.warm_pool is not None and self.refill_s is None and self.refill_rate is None

    @property
    def everywhere(self) -> bool:
        return self.placement == "prepulled" or "image_pull" in self.without


@dataclass(frozen=True)
class Worked:
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
    if not asked.think_correlation:
        return sum(median * math.exp(sigma * rng.gauss(0, 1)) for _ in range(pauses))
    mixed = math.sqrt(asked.think_correlation) * shared + math.sqrt(1 - asked.think_correlation) * rng.gauss(0, 1)
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


MOMENT_S = 1e-9
"""So much later comes what follows at the same moment."""


class Tokens:
    """A bucket, full at the start; a line before it, first come first served."""

    def __init__(self, env: simpy.Environment, rate: float | None, burst: int) -> None:
        self._env, self._gap, self._burst = env, None if rate is None else 1 / rate, burst
        self._level, self._filling = burst, False
        self._line: list[Any] = []

    def ask(self) -> Any:
        """An event that happens when a token is taken."""
        event = self._env.event()
        if self._gap is None:
            return event.succeed()
        if self._level and not self._line:
            self._level -= 1
            event.succeed()
        else:
            self._line.append(event)
        if not self._filling:
            self._filling = True
            self._env.process(self._fill(self._gap))
        return event

    def leave(self, event: Any, *, back: bool) -> None:
        """Go away without one: the promised token is given back, or lost."""
        if back and event in self._line:
            self._line.remove(event)

    def _fill(self, gap: float) -> Generator[Any, Any, None]:
        while self._level < self._burst:
            yield self._env.timeout(gap)
            if self._line:
                self._line.pop(0).succeed()
            else:
                self._level += 1
        self._filling = False


class WarmPool:
    """Ready sandboxes, full at the start: slots of their own time, one maker, or each prompt's own."""

    def __init__(self, env: simpy.Environment, asked: StepAsked) -> None:
        self._env, self._asked = env, asked
        self._slots = [0.0] * (asked.warm_pool or 0)  # when each is ready
        self._level = asked.warm_pool or 0  # of one maker
        self._next_at = math.inf  # when what it is making is ready

    def take(self, prompt: Any) -> bool:
        asked = self._asked
        if asked.warm_pool is None:
            return False
        if asked.image_pool:
            hit = bool(prompt.ready > 0)
            prompt.ready -= hit
            return hit
        if asked.refill_rate is not None:
            return self._of_one_maker(1 / asked.refill_rate)
        slot = min(range(len(self._slots)), key=self._slots.__getitem__)
        if self._slots[slot] > self._env.now:
            return False
        self._slots[slot] = self._env.now + (asked.refill_s or 0.0)
        return True

    def _of_one_maker(self, gap: float) -> bool:
        full, now = self._asked.warm_pool or 0, self._env.now
        while self._level < full and self._next_at <= now:
            self._level += 1
            self._next_at += gap
        if self._level == full:
            self._next_at = now + gap
        if self._level == 0:
            return False
        self._level -= 1
        return True


class Pods:
    """Nodes with pods, a line before them, and the images on their disks."""

    def __init__(self, env: simpy.Environment, asked: StepAsked) -> None:
        self._env, self._asked = env, asked
        count = asked.nodes or 0
        self._used = [0] * count
        self._disks: list[OrderedDict[int, float]] = [OrderedDict() for _ in range(count)]  # image → there at, by use
        self._busy_until, self._late_until = [0.0] * count, [0.0] * count
        self._line: list[tuple[Any, int | None, bool]] = []
        self.pulled_gb = 0.0
        self._built: dict[int, float] = {}  # image → built at
        self._builders = [0.0] * (asked.builders or len(asked.images))

    def ask(self, image: int | None, *, hit: bool) -> Any:
        """An event whose value is the node, and when the image lies there; a hit needs none."""
        event = self._env.event()
        self._line.append((event, image, hit))
        self._serve_line()
        return event

    def leave(self, event: Any) -> None:
        if event.triggered:
            self.release(event.value[0], 0.0)
        else:
            self._line = [one for one in self._line if one[0] is not event]

    def release(self, node: int, after_s: float) -> None:
        """A pod's clean-up takes this long, and then it is free; who asks at that very moment comes before."""
        self._env.process(self._later(node, max(after_s, MOMENT_S)))

    def _later(self, node: int, after_s: float) -> Generator[Any, Any, None]:
        yield self._env.timeout(after_s)
        self._used[node] -= 1
        self._serve_line()

    def _serve_line(self) -> None:
        while self._line and min(self._used) < self._asked.pods_per_node:
            event, image, hit = self._line.pop(0)
            node = self._chosen(image)
            self._used[node] += 1
            event.succeed((node, self._env.now if hit else self._there_at(node, image)))

    def _chosen(self, image: int | None) -> int:
        free = [node for node, used in enumerate(self._used) if used < self._asked.pods_per_node]
        if self._asked.placement == "colocated" and not self._asked.everywhere:
            free = [node for node in free if image in self._disks[node]] or free
        return min(free, key=lambda node: (self._used[node], node))

    def _built_at(self, image: int) -> float:
        if image not in self._built:
            builder = min(range(len(self._builders)), key=self._builders.__getitem__)
            begin = max(self._env.now, self._builders[builder])
            self._built[image] = self._builders[builder] = begin + self._asked.build_s
        return max(self._env.now, self._built[image])

    def _there_at(self, node: int, image: int | None) -> float:
        if image is None or "image_pull" in self._asked.without:
            return self._env.now
        if self._asked.everywhere:
            return self._built_at(image)
        if image not in self._disks[node]:
            self._pull(node, image)
        self._disks[node].move_to_end(image)
        return max(self._env.now, self._disks[node][image])

    def _pull(self, node: int, image: int) -> None:
        sizes, disk = self._asked.images, self._disks[node]
        while disk and math.fsum(sizes[one] for one in disk) + sizes[image] > self._asked.disk_gb:
            disk.popitem(last=False)
        took, built_at = sizes[image] / self._asked.pull_gb_s, self._built_at(image)
        if built_at > self._env.now:
            self._late_until[node] = max(built_at, self._late_until[node], self._busy_until[node]) + took
            disk[image] = self._late_until[node]
        else:
            self._busy_until[node] = disk[image] = max(self._env.now, self._busy_until[node]) + took
        self.pulled_gb += sizes[image]
