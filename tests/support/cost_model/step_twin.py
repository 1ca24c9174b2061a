"""The rules of docs/simulation.md a second time, in SimPy: shares no code with the cost model.

Everything is in seconds and GB. A rollout is a process; whoever ends it before its time interrupts it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import simpy

from tests.support.cost_model.step_twin_parts import Pods, StepAsked, Tokens, WarmPool, draw_trial

Waiting = Generator[Any, Any, None]


@dataclass
class StepFound:
    wall_s: float = 0.0
    worker_s: float = 0.0  # what workers were held for
    billed_s: float = 0.0  # what sandboxes existed for
    pulled_gb: float = 0.0
    throttled_s: float = 0.0  # of all workers, for a token
    counts: Counter[str] = field(default_factory=Counter)  # attempts, delivered, hits, started, snapshots


@dataclass(eq=False)
class Prompt:
    """Rollouts of one image, begun together."""

    number: int  # in the whole run
    size: int
    image: int | None
    tries: int = 1
    ready: int = 0  # of the image's own pool
    shared: float = 0.0  # standard normal
    done: int = 0
    delivered: int = 0
    rollouts: list[Rollout] = field(default_factory=list)


@dataclass(eq=False)
class Rollout:
    """One of a prompt's, and where it is."""

    prompt: Prompt
    number: int  # in its prompt
    step: int = 0  # of the stream, for staleness
    tries: int = 0
    doing: str = "queued"  # token, pod, image, works, cleans, backs off, done
    since: float = 0.0  # when its worker was last taken
    request: Any = None
    node: int | None = None
    born_s: float | None = None  # of its sandbox
    cleanup_s: float = 0.0
    process: Any = None
    suspended_s: float = 0.0  # of its sandbox, if its attempt is not cut
    length_s: float = 1.0  # ... that long
    used: bool = False  # whether it starts in the sandbox of another, on its node
    ok: bool = False


class StepTwin:
    """One run of one training run, with everything drawn by name from ``seed``."""

    def __init__(self, asked: StepAsked, seed: str) -> None:
        self.asked, self.seed, self.found = asked, seed, StepFound()
        self.env = simpy.Environment()
        self.tokens = Tokens(self.env, asked.limits[0], asked.create_burst)
        self.pods = Pods(self.env, asked)
        self.pool = WarmPool(self.env, asked)
        self.workers = asked.workers_started
        self.free = self.workers
        self.queue: deque[Rollout] = deque()
        self.going: list[Rollout] = []
        self.prompts = 0
        self.turns: dict[int | None, int] = {}
        self.done = self.over = self.keep = self.launched = self.completions = 0
        self.ended: Any = None
        self.completed: Any = None
        self.trained: list[Any] = []  # async: an event for each training

    def named(self, *what: object) -> Random:
        """Draws that depend on what they are for alone, not on when that happens."""
        return Random(f"{self.seed}:{what}")

    def prompt(self, size: int, tries: int = 1) -> Prompt:
        asked, number = self.asked, self.prompts
        self.prompts += 1
        rng = self.named("prompt", number)
        image = rng.randrange(len(asked.images)) if asked.images else None
        own = (asked.warm_pool or 0) if asked.image_pool else 0
        found = Prompt(number, size, image, tries, own, rng.gauss(0, 1))
        found.rollouts = [Rollout(found, index) for index in range(size)]
        return found

    def prompts_of(self, rollouts: int) -> list[Prompt]:
        group = self.asked.group_size or 1
        if self.asked.fork_s is not None:
            for _ in range(0, rollouts, group):
                one = self.named("snapshot", self.found.counts["snapshots"]).choice(self.asked.trials)
                self.found.billed_s += one.create_s + one.ready_s + one.preload_s
                self.found.counts["snapshots"] += 1
        return [self.prompt(min(group, rollouts - first)) for first in range(0, rollouts, group)]

    def dispatch(self) -> None:
        """Whoever is free takes what is next; which of the workers does changes nothing."""
        while self.free and self.queue:
            self.start(self.next_in_turn() if self.asked.recycle_s is not None else self.queue[0])

    def next_in_turn(self) -> Rollout:
        """The first of the image whose last start is the longest ago."""
        seen: dict[int | None, Rollout] = {}
        for rollout in self.queue:
            seen.setdefault(rollout.prompt.image, rollout)
        return min(seen.values(), key=lambda one: self.turns.get(one.prompt.image, -1))

    def start(self, rollout: Rollout) -> None:
        self.queue.remove(rollout)
        self.turns[rollout.prompt.image] = len(self.turns) + self.found.counts["started"]
        self.found.counts["started"] += 1
        rollout.since = self.env.now
        self.free -= 1
        self.going.append(rollout)
        rollout.process = self.env.process(self.serve(rollout))

    def let_worker_go(self, rollout: Rollout) -> None:
        self.found.worker_s += max(0.0, self.env.now - rollout.since)
        self.going.remove(rollout)
        self.free += 1

    def serve(self, rollout: Rollout) -> Waiting:
        try:
            if self.trained and rollout.step >= (self.asked.staleness or math.inf):
                rollout.since = math.inf  # it waits for a training, and holds nothing
                yield self.trained[rollout.step - (self.asked.staleness or 0)]
                rollout.since = self.env.now
            yield from self.attempts(rollout)
        except simpy.Interrupt:
            return  # whoever interrupted has seen to everything

    def attempts(self, rollout: Rollout) -> Waiting:
        asked, counts = self.asked, self.found.counts
        while True:
            rollout.doing = "token"
            if not rollout.used:
                rollout.request = self.tokens.ask()
                begin = self.env.now
                try:
                    yield rollout.request
                finally:
                    self.found.throttled_s += self.env.now - begin
            rollout.tries += 1
            counts["attempts"] += 1
            if (yield from self.one(rollout)):
                self.finish(rollout, delivered=True)
                return
            if asked.on_failure == "resample":
                self.redo(rollout)
                return
            if asked.on_failure == "keep":  # delivered, with reward 0
                self.finish(rollout, delivered=True)
                return
            if asked.on_failure == "mask" or rollout.tries == asked.max_attempts:
                self.finish(rollout, delivered=False)
                return
            rollout.doing = "backs off"
            yield self.env.timeout(asked.backoff_s)

    def one(self, rollout: Rollout) -> Generator[Any, Any, bool]:
        """One attempt from 2 to the moment at which the worker may go on; whether it succeeded."""
        asked, env = self.asked, self.env
        prompt = rollout.prompt
        name = prompt.number, rollout.number, rollout.tries
        worked = draw_trial(asked, self.named("attempt", *name), prompt.shared)
        rollout.cleanup_s = worked.cleanup_s
        limit_at = math.inf if asked.timeout_s is None else env.now + asked.timeout_s

        def left() -> Any:
            return env.timeout(limit_at - env.now) if limit_at < math.inf else env.event()

        hit = rollout.used or self.pool.take(prompt)
        self.found.counts["hits"] += hit
        if asked.nodes is not None and not rollout.used:
            rollout.doing = "pod"
            rollout.request = self.pods.ask(prompt.image, hit=hit)
            yield rollout.request | left()
            if not rollout.request.triggered:
                self.pods.leave(rollout.request)
                return False
            rollout.node, there_at = rollout.request.value
            if there_at > env.now:
                rollout.doing = "image"
                yield env.timeout(min(there_at, limit_at) - env.now)
                if env.now < there_at:
                    return (yield from self.clean(rollout, limit_at, ok=False))
        rollout.doing, rollout.born_s = "works", env.now - (worked.start_s if hit and not rollout.used else 0.0)
        length = worked.work_s + (0.0 if hit else worked.start_s)
        length += (asked.recycle_s or 0.0) if rollout.used else 0.0
        rollout.used, rollout.suspended_s, rollout.length_s = False, worked.suspended_s, length
        fails_s = worked.fails_s(asked, self.named("failure", *name), length)
        lasts = min(length, fails_s, limit_at - env.now)
        ok = worked.ok and lasts == length
        yield env.timeout(lasts)
        rollout.ok = ok
        if ok and asked.recycle_s is not None:
            return True
        return (yield from self.clean(rollout, limit_at, ok=ok))

    def clean(self, rollout: Rollout, limit_at: float, *, ok: bool) -> Generator[Any, Any, bool]:
        """Clean-up begins; whether it is over in time, where the worker was asked to wait for it."""
        self.put_away(rollout)
        if not self.asked.include_cleanup:
            return ok
        rollout.doing = "cleans"
        left_s = max(0.0, limit_at - self.env.now)
        yield self.env.timeout(min(rollout.cleanup_s, left_s))
        return ok and rollout.cleanup_s <= left_s

    def put_away(self, rollout: Rollout) -> None:
        if rollout.born_s is not None:
            lived_s = self.env.now - rollout.born_s
            share = min(1.0, lived_s / rollout.length_s)
            self.found.billed_s += lived_s - share * rollout.suspended_s + rollout.cleanup_s
            rollout.born_s = None
        if rollout.node is not None:
            self.pods.release(rollout.node, rollout.cleanup_s)
            rollout.node = None

    def finish(self, rollout: Rollout, *, delivered: bool) -> None:
        """A rollout's last attempt is over."""
        self.let_worker_go(rollout)
        rollout.doing = "done"
        if rollout.ok and self.asked.recycle_s is not None:
            self.hand_over(rollout)
        if self.ended.triggered:  # at the very instant at which the step ended: one too many
            return
        self.over += 1
        self.found.counts["delivered"] += delivered
        if delivered or self.asked.on_failure != "mask":
            self.done += 1
            rollout.prompt.done += 1
            self.completions += 1
            if not self.completed.triggered:
                self.completed.succeed()
        rollout.prompt.delivered += delivered
        self.go_on()

    def hand_over(self, rollout: Rollout) -> None:
        """Give the sandbox to the next rollout of its image, if one waits; else clean it up."""
        image = rollout.prompt.image
        successor = next((one for one in self.queue if one.prompt.image == image), None)
        if successor is None:
            self.put_away(rollout)
            return
        rollout.cleanup_s, successor.node, rollout.node = 0.0, rollout.node, None
        self.put_away(rollout)
        successor.used = True
        self.start(successor)

    def go_on(self) -> None:
        """End the step if it is over; else whoever is free takes what is next."""
        if self.done >= self.keep or self.over == self.launched:
            if not self.ended.triggered:
                self.ended.succeed()
        else:
            self.dispatch()

    def redo(self, rollout: Rollout) -> None:
        """A failure under ``resample``: all of its prompt's rollouts leave, and a new prompt joins the queue."""
        prompt = rollout.prompt
        self.let_worker_go(rollout)
        for other in prompt.rollouts:
            if other in self.going:
                self.interrupt(other, token_back=False)
        self.queue = deque(one for one in self.queue if one.prompt is not prompt)
        self.done -= prompt.done
        self.over -= prompt.done
        self.found.counts["delivered"] -= prompt.delivered
        if prompt.tries == self.asked.max_attempts:
            self.done += prompt.size
            self.over += prompt.size
        else:
            self.queue.extend(self.prompt(prompt.size, prompt.tries + 1).rollouts)
        self.go_on()

    def interrupt(self, rollout: Rollout, *, token_back: bool) -> None:
        """End a rollout that goes on: it leaves its lines, and what it has is put away."""
        if rollout.doing == "token":
            self.tokens.leave(rollout.request, back=token_back)
        elif rollout.doing == "pod":
            self.pods.leave(rollout.request)
        rollout.process.interrupt()
        self.put_away(rollout)
        self.let_worker_go(rollout)
        rollout.doing = "done"

    def phase(self, prompts: Iterable[Prompt], keep: int) -> Waiting:
        """One step's rollouts, from their start to the step's end."""
        self.queue = deque(rollout for prompt in prompts for rollout in prompt.rollouts)
        self.launched, self.keep = len(self.queue), keep
        self.done = self.over = 0
        self.ended = self.env.event()
        self.dispatch()
        yield self.ended
        for rollout in list(self.going):
            self.interrupt(rollout, token_back=True)
        self.queue.clear()

    def steps(self) -> Waiting:
        asked, trained, before = self.asked, 0.0, 0.0
        full, rest = divmod(asked.trajectories, asked.batch)
        sizes = [asked.batch] * full + [rest] * (rest > 0)
        plans = [self.prompts_of(math.ceil(size * (1 + asked.over_provision) - 1e-9)) for size in sizes]
        for size, prompts in zip(sizes, plans, strict=True):
            yield from self.phase(prompts, size)
            end = self.env.now
            before, trained = trained, max(end, trained) + asked.train_s
            wait_for = trained if asked.policy == "sync" else max(end, before)
            yield self.env.timeout(wait_for - end)
        self.found.wall_s = trained

    def stream(self) -> Waiting:
        asked = self.asked
        prompts = self.prompts_of(asked.trajectories)
        for place, rollout in enumerate(rollout for prompt in prompts for rollout in prompt.rollouts):
            rollout.step = place // asked.batch
        steps = math.ceil(asked.trajectories / asked.batch)
        self.trained = [self.env.event() for _ in range(steps)]
        trainer = self.env.process(self.trainer())
        yield from self.phase(prompts, asked.trajectories)
        yield trainer
        self.found.wall_s = self.env.now

    def trainer(self) -> Waiting:
        asked = self.asked
        for number, event in enumerate(self.trained):
            wanted = min((number + 1) * asked.batch, asked.trajectories)
            while self.completions < wanted:
                self.completed = self.env.event()
                yield self.completed
            yield self.env.timeout(asked.train_s)
            event.succeed()

    def run(self) -> StepFound:
        """Everything from the start to the end of the last training."""
        self.completed = self.env.event()
        story = self.stream() if self.asked.policy == "async" else self.steps()
        self.env.run(until=self.env.process(story))
        self.found.pulled_gb = self.pods.pulled_gb
        return self.found
