"""Where attempts of the step model's twin stand in line: the create rate's tokens, a warm pool, pods on nodes."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Generator
from typing import Any, Protocol

import simpy

from tests.support.cost_model.step_twin_trials import StepAsked

MOMENT_S = 1e-9
"""So much later comes what follows at the same moment."""


class HasReady(Protocol):
    """A prompt, as far as its own pool goes."""

    ready: int


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
        self._slots = [0.0] * (asked.pool or 0)  # when each is ready
        self._level = asked.pool or 0  # of one maker
        self._next_at = math.inf  # when what it is making is ready

    def take(self, prompt: HasReady) -> bool:
        """Whether it is a hit."""
        asked = self._asked
        if asked.pool is None:
            return False
        if asked.image_pool:
            hit = prompt.ready > 0
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
        full, now = self._asked.pool or 0, self._env.now
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
        """Go away without one."""
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
        while self._line and min(self._used) < self._asked.pods:
            event, image, hit = self._line.pop(0)
            node = self._chosen(image)
            self._used[node] += 1
            event.succeed((node, self._env.now if hit else self._there_at(node, image)))

    def _chosen(self, image: int | None) -> int:
        free = [node for node, used in enumerate(self._used) if used < self._asked.pods]
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
