"""The rules of docs/simulation.md a second time, as SimPy processes: shares no code with the engine.

Everything is in seconds. Attempts are put together as they happen: cold start, actions with a pause between two of
them, a kill after the time limit; nothing is known in advance, and what is cut is interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import simpy


@dataclass(frozen=True)
class Recorded:
    """A trial to draw attempts from."""

    ok: bool
    cold_s: float
    actions_s: tuple[float, ...]
    cleanup_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A training run."""

    trials: Sequence[Recorded]
    rollouts: int
    workers: int
    cap: int | None = None
    backoff_s: float = 0.0
    timeout_s: float | None = None
    think: tuple[float, float] | None = None  # median, sigma
    rate: float | None = None
    burst: int = 1
    pool: int | None = None
    refill_s: float | None = None
    refill_rate: float | None = None
    group: int | None = None
    batch: int | None = None
    over: float = 0.0
    partial: bool = False
    train_s: float = 0.0
    policy: str = "async"


@dataclass
class Found:
    """What a run took."""

    wall_s: float = 0.0
    step_s: float = 0.0  # of the first full step
    attempts: int = 0
    hits: int = 0
    held_s: float = 0.0
    backoff_s: float = 0.0
    waited_s: float = 0.0
    wasted_s: float = 0.0
    idle_s: float = 0.0  # of ready sandboxes
    billed_s: float = 0.0
    lasted: list[float] = field(default_factory=list)


@dataclass
class Job:
    image: int | None
    tries: int = 0
    spent_s: float = 0.0
    doing: str = "new"
    since: float = 0.0
    left_s: float = 0.0
    clock_s: float = 0.0
    ok: bool = False
    cut_at: float = 0.0
    request: Any = None


class Twin:
    """One run."""

    def __init__(self, asked: Asked, rng: Random) -> None:
        self.asked, self.rng, self.found = asked, rng, Found()
        self.env = simpy.Environment()
        self.tokens: simpy.Container | None = None
        if asked.rate is not None:
            self.tokens = simpy.Container(self.env, capacity=asked.burst, init=asked.burst)
            self.env.process(self.refill_tokens(1 / asked.rate))
        self.level, self.level_since, self.making = 0 if asked.group else (asked.pool or 0), 0.0, False
        self.images: dict[int, int] = {}
        self.completions: list[float] = []

    def refill_tokens(self, gap: float) -> Generator[Any, Any, None]:
        assert self.tokens is not None
        while True:
            if self.tokens.level == self.tokens.capacity:
                yield self.below_full()
            yield self.env.timeout(gap)
            yield self.tokens.put(1)

    def below_full(self) -> simpy.Event:
        self.needed = self.env.event()
        return self.needed

    def change_level(self, by: int) -> None:
        self.found.idle_s += self.level * (self.env.now - self.level_since)
        self.level_since = self.env.now
        self.level += by

    def slot_again(self, after: float) -> Generator[Any, Any, None]:
        yield self.env.timeout(after)
        self.change_level(+1)

    def make(self, gap: float) -> Generator[Any, Any, None]:
        while self.level < (self.asked.pool or 0):
            yield self.env.timeout(gap)
            self.change_level(+1)
        self.making = False

    def takes_ready(self, job: Job) -> bool:
        asked = self.asked
        if asked.pool is None:
            return False
        if asked.group:
            if job.image is None or self.images.setdefault(job.image, asked.pool) == 0:
                return False
            self.images[job.image] -= 1
        elif self.level == 0:
            return False
        else:
            self.change_level(-1)
            if asked.refill_s is not None:
                self.env.process(self.slot_again(asked.refill_s))
            elif not self.making:
                assert asked.refill_rate is not None
                self.making = True
                self.env.process(self.make(1 / asked.refill_rate))
        self.found.hits += 1
        return True

    def attempt(self, job: Job) -> None:
        """Decide how long the attempt will hold its worker, and its sandbox."""
        one = self.rng.choice(self.asked.trials)
        hit = self.takes_ready(job)
        length = sum(one.actions_s)
        if self.asked.think is not None:
            median, sigma = self.asked.think
            pauses = range(len(one.actions_s) - 1)
            length += sum(median * math.exp(sigma * self.rng.gauss(0, 1)) for _ in pauses)
        held, job.ok = length + (0.0 if hit else one.cold_s), one.ok
        job.clock_s = one.cold_s + length + one.cleanup_s
        if self.asked.timeout_s is not None and held > self.asked.timeout_s:
            job.clock_s -= held - self.asked.timeout_s
            held, job.ok = self.asked.timeout_s, False
        job.left_s = held
        self.found.attempts += 1

    def serve(self, job: Job) -> Generator[Any, Any, None]:
        env, found, asked = self.env, self.found, self.asked
        while job.doing != "done":
            if job.doing in ("new", "asks"):
                if self.tokens is not None:
                    job.since = env.now
                    job.request = self.tokens.get(1)
                    if self.tokens.level < self.tokens.capacity and not self.needed.triggered:
                        self.needed.succeed()
                    job.doing = "waits" if job.doing == "new" else "waits again"
                    yield job.request
                    found.waited_s += env.now - job.since
                self.attempt(job)
                job.doing = "holds"
            if job.doing == "holds":
                job.since, left = env.now, job.left_s
                yield env.timeout(left)
                found.held_s += left
                job.spent_s += left
                found.billed_s += job.clock_s
                job.tries += 1
                if job.ok or job.tries == asked.cap:
                    return
                job.doing, job.left_s = "backs off", asked.backoff_s
            job.since, left = env.now, job.left_s
            yield env.timeout(left)
            found.backoff_s += left
            job.spent_s += left
            job.doing = "asks"

    def cut(self, job: Job) -> Job | None:
        """The step has ended; the job, if it goes on in the next."""
        found, now = self.found, self.env.now
        job.image = None  # its image's ready sandboxes are gone with the step
        ran = now - job.since
        if job.doing.startswith("waits"):
            found.waited_s += ran
            job.request.cancel()
            job.doing = "asks"
            if job.tries and self.asked.partial:
                return job
            found.wasted_s += job.spent_s
            return None
        job.left_s -= ran
        job.spent_s += ran
        job.cut_at = now
        if job.doing == "holds":
            found.held_s += ran
        else:
            found.backoff_s += ran
        if self.asked.partial:
            return job
        self.let_go(job)
        return None

    def let_go(self, job: Job) -> None:
        self.found.wasted_s += job.spent_s
        if job.doing == "holds":
            self.found.billed_s += max(0.0, job.clock_s - job.left_s)

    def worker(self, jobs: list[Job]) -> Generator[Any, Any, None]:
        while jobs:
            job = jobs.pop(0)
            if job.doing == "holds":
                job.clock_s += self.env.now - job.cut_at
            try:
                yield from self.serve(job)
            except simpy.Interrupt:
                kept = self.cut(job)
                if kept is not None:
                    self.carried.append(kept)
                return
            if self.done == self.keep:  # at the very instant at which the step ended: one too many
                job.doing = "done"
                if self.asked.partial:
                    self.carried.append(job)
                else:
                    self.let_go(job)
                return
            self.completions.append(self.env.now)
            self.done += 1
            if self.done == self.keep:
                self.full.succeed()
                return

    def phase(self, jobs: list[Job], keep: int) -> Generator[Any, Any, None]:
        self.done, self.keep, self.full = 0, keep, self.env.event()
        self.carried: list[Job] = []
        workers = [self.env.process(self.worker(jobs)) for _ in range(min(self.asked.workers, len(jobs)))]
        yield self.full
        for one in workers:
            if one.is_alive and one is not self.env.active_process:
                one.interrupt()
        yield self.env.timeout(0)

    def fresh(self, count: int) -> list[Job]:
        self.images.clear()
        return [Job(number // self.asked.group if self.asked.group else None) for number in range(count)]

    def steps(self, batch: int) -> Generator[Any, Any, None]:
        asked, trained, before = self.asked, 0.0, 0.0
        full, rest = divmod(asked.rollouts, batch)
        carried: list[Job] = []
        for size in [batch] * full + [rest] * (rest > 0):
            start = self.env.now
            launched = math.ceil(size * (1 + asked.over) - 1e-9)
            jobs = carried + self.fresh(max(0, launched - len(carried)))
            yield from self.phase(jobs, size)
            carried = self.carried
            end = self.env.now
            self.found.lasted.append(end - start)
            before, trained = trained, max(end, trained) + asked.train_s
            wait_for = trained if asked.policy == "sync" else max(end, before)
            yield self.env.timeout(wait_for - end)
        for job in carried:
            self.let_go(job)
        self.found.wall_s = trained

    def stream(self) -> Generator[Any, Any, None]:
        asked, trained = self.asked, 0.0
        yield from self.phase(self.fresh(asked.rollouts), asked.rollouts)
        self.found.wall_s = self.env.now
        if asked.batch:
            for last in [*range(asked.batch, asked.rollouts, asked.batch), asked.rollouts]:
                trained = max(trained, self.completions[last - 1]) + asked.train_s
            self.found.wall_s = trained

    def run(self) -> Found:
        self.needed = self.env.event()
        by_step = self.asked.batch is not None and self.asked.policy != "async"
        steps = self.steps(self.asked.batch) if by_step and self.asked.batch else self.stream()
        self.env.run(until=self.env.process(steps))
        self.env.run(until=max(self.found.wall_s, self.env.now) + 1e-9)
        self.change_level(0)
        self.found.step_s = self.found.lasted[0] if self.found.lasted else self.found.wall_s
        return self.found
