"""State of a run across steps: create limit, pool, nodes and totals.

A node pulls one image after another. The end of a pull is therefore known at its request, and needs no event.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush, heapreplace
from typing import NamedTuple

from costmodel.simulation.attempts import AttemptTimes
from costmodel.simulation.random_streams import AttemptStream, StepDraws
from costmodel.simulation.rules import NodeSet, StepRules
from costmodel.training.run import RESAMPLE


class SimulatedSandbox(NamedTuple):
    """A sandbox with the node of its pod. ns."""

    begin: int
    end: int  # clean-up apart
    cleanup: int
    node: int  # below 0: there are no nodes
    bill: int  # index of its clock, common to all its rollouts of a batch
    suspended: int = 0  # suspended time


class StepTaken(NamedTuple):
    """Contribution of one step to a run, or of all steps so far; ns are sums over workers or sandboxes."""

    wall_ns: float = 0  # between the ends of training of this and the previous step
    sandboxes: int = 0
    held_ns: float = 0  # by workers
    waited_ns: float = 0  # for creates; part of the above
    wasted_ns: float = 0  # by cut rollouts; part of the above
    delivered: float = 0
    attempts: float = 0
    hits: float = 0
    idle_ns: float = 0  # of ready sandboxes, before use
    pulled_gb: float = 0.0
    suspended_ns: float = 0  # of sandboxes; not in ``usd``
    usd: float = 0.0  # of sandboxes; of one step only
    resting_ns: float = 0  # part of wall_ns without rollouts; 0 in a stream


class Redone(NamedTuple):
    """A prompt with the number of its repetitions."""

    step: int
    number: int  # within the step, in the first draw
    times: int
    rollouts: int


class DiskUse(NamedTuple):
    """What nodes have pulled so far and hold, in GB, and the number of built images."""

    pulled_gb: float
    held_gb: float
    built: int


class Nodes:
    """Their state; times are ns from the start of the run."""

    def __init__(self, cluster: NodeSet, disks: Sequence[Iterable[int]] = (), built: Iterable[int] = ()) -> None:
        """All pods are free. ``disks``: images on each node by last use; ``built``: images without a build."""
        self._cluster = cluster
        self._used = [0] * cluster.nodes
        self.free = cluster.nodes * cluster.pods
        held = disks if cluster.pull_ns and disks else [()] * cluster.nodes
        # Images of each node with their arrival, the least recently used first:
        self._disks: list[dict[int, int]] = [dict.fromkeys(disk, 0) for disk in held]
        self._held_gb = [math.fsum(map(cluster.sizes_gb.__getitem__, disk)) for disk in self._disks]
        self._pulled = [0] * cluster.nodes  # end of all requested pulls
        self._late = [0] * cluster.nodes  # end of pulls after a build
        self.pulled_gb = 0.0
        self.built = dict.fromkeys([*range(cluster.built), *built], 0)  # when each image is built
        self._builders = [0] * cluster.builders  # when each is free

    def disks(self) -> list[list[int]]:
        """Return images on nodes, including running pulls, by last use."""
        return [list(disk) for disk in self._disks]

    def use(self) -> DiskUse:
        return DiskUse(self.pulled_gb, math.fsum(self._held_gb), len(self.built))

    def take(self, image: int, now: int, *, hit: bool = False) -> tuple[int, int]:
        """Take a free pod for this image: return its node, and the arrival of the image."""
        cluster, used = self._cluster, self._used
        holders: list[int] = []
        if cluster.near:
            holders = [node for node, disk in enumerate(self._disks) if image in disk and used[node] < cluster.pods]
        # The emptiest, of several the first.
        node = min(holders, key=used.__getitem__) if holders else used.index(min(used))
        used[node] += 1
        self.free -= 1
        if hit or not cluster.fills:
            return node, now
        built = self._build(image, now)
        if not cluster.pull_ns:
            return node, built
        disk = self._disks[node]
        if image not in disk:
            return node, self._pull(node, image, now, built)
        ready = disk.pop(image)
        disk[image] = ready
        return node, ready if ready > now else now

    def let_go(self, nodes: Collection[int]) -> None:
        """A pod of each of these is free again."""
        for node in nodes:
            self._used[node] -= 1
        self.free += len(nodes)

    def _build(self, image: int, now: int) -> int:
        """Return when the image is built; its first use starts the build, or waits for a builder."""
        if not self._cluster.build_ns:
            return now
        if image not in self.built:
            start = max(now, self._builders[0]) if self._builders else now
            self.built[image] = start + self._cluster.build_ns
            if self._builders:
                heapreplace(self._builders, self.built[image])
        return max(now, self.built[image])

    def _pull(self, node: int, image: int, now: int, built: int) -> int:
        """Request a missing image and return its arrival; pulls that wait for builds have a separate queue."""
        disk, cluster = self._disks[node], self._cluster
        size = cluster.sizes_gb[image]
        held = self._held_gb[node] + size
        while held > cluster.disk_gb and disk:
            oldest = next(iter(disk))
            del disk[oldest]
            held -= cluster.sizes_gb[oldest]
        self._held_gb[node] = held
        if built > now:
            ready = self._late[node] = max(built, self._late[node], self._pulled[node]) + cluster.pull_ns[image]
        else:
            ready = self._pulled[node] = max(now, self._pulled[node]) + cluster.pull_ns[image]
        disk[image] = ready
        self.pulled_gb += size
        return ready


class State:
    """State of one run under one random stream, without its workers."""

    def __init__(
        self, rules: StepRules, source: AttemptStream, disks: Sequence[Iterable[int]] = (), built: Iterable[int] = ()
    ) -> None:
        """Everything is ready: the burst unused, the pool full. ``disks``: images on nodes; ``built``: built ones."""
        self.rules = rules
        self.source = source
        self.gap_ns, self.allowance_ns = rules.gap_ns, (rules.burst - 1) * rules.gap_ns
        self.full_ns = 0.0  # time of the full burst
        self.nodes = None if rules.cluster is None else Nodes(rules.cluster, disks, built)
        self.clocks_ns: list[int] = []  # per sandbox, by start
        self.held_ns = self.waited_ns = self.wasted_ns = self.delivered = self.attempts = self.hits = 0
        self._idle_ns = self.suspended_ns = 0
        # Pool sandboxes ready from the start, not taken; for each image in flight those of the next image:
        in_flight = max(1.0, rules.workers / rules.group) if rules.image_pool else 1
        self._stock = (rules.pool or 0) * in_flight
        self._ready: deque[int] = deque()  # arrival of each replacement, ascending
        self._claimed: Counter[int] = Counter()  # pool sandboxes by prompt
        self._releases: list[tuple[int, int]] = []  # when pods are free again, and their node
        self._void: Counter[tuple[int, int]] = Counter()  # void releases
        # By number of the rollout since the start of the run:
        self.first: list[AttemptTimes] = []  # first attempt
        self.warm: list[AttemptTimes] = []  # ... with a sandbox of the pool
        self.image: list[int] = []
        self.prompt: list[int] = []
        self._drawn: list[tuple[StepDraws, int]] = []  # draw of the rollout, and the number of the first rollout there
        self.launched = 0  # next rollout in the queue; with recycling, number of started rollouts
        self.waiting: dict[int, deque[int]] = {}  # with recycling: rollouts by image, in the order of their turns
        # For repeated prompts:
        self.redone: dict[int, Redone] | None = {} if rules.on_failure == RESAMPLE else None
        self.finished: Counter[int] = Counter()  # finished rollouts by prompt
        self.dead: set[int] = set()

    def totals(self, now: int, trained: int) -> StepTaken:
        """Return the contribution of all steps until ``now``, the last of them ``trained``."""
        ready = sum(now - since for since in self._ready if since < now)
        return StepTaken(
            wall_ns=trained,
            sandboxes=len(self.clocks_ns),
            held_ns=self.held_ns + self.waited_ns,
            waited_ns=self.waited_ns,
            wasted_ns=self.wasted_ns,
            delivered=self.delivered,
            attempts=self.attempts,
            hits=self.hits,
            idle_ns=self._idle_ns + self._stock * now + ready,
            pulled_gb=0.0 if self.nodes is None else self.nodes.pulled_gb,
            suspended_ns=self.suspended_ns,
        )

    def load(self, draws: StepDraws, count: int, step: int) -> None:
        """The first ``count`` rollouts of a step join the queue."""
        group = self.rules.group
        base = self._join(draws, count)
        if self.redone is not None:
            for number in range(-(-count // group)):
                self.redone[base + number] = Redone(step, number, 0, min(group, count - number * group))

    def redo(self, prompt: int) -> int:
        """Queue a repetition of this prompt; return the number of rollouts that end instead."""
        assert self.redone is not None
        self.dead.add(prompt)
        before = self.redone.pop(prompt)
        if before.times + 1 == self.rules.cap:
            return before.rollouts
        repetition = before._replace(times=before.times + 1)
        draws = self.source.stream.step(before.step, before.rollouts, prompt=before.number, redone=repetition.times)
        self.redone[self._join(draws, before.rollouts)] = repetition
        return 0

    def _join(self, draws: StepDraws, count: int) -> int:
        """Return the number of the first new prompt."""
        first, base = len(self.first), self.prompt[-1] + 1 if self.prompt else 0
        self.first += self.source.first(draws)[:count]
        if self.rules.recycle_ns is not None:
            for rollout, image in enumerate(draws.images[:count], first):
                self.waiting.setdefault(image, deque()).append(rollout)
        if self.rules.pool is not None or self.rules.recycle_ns is not None:
            self.warm += self.source.first(draws, warm=True)[:count]
        self.image += draws.images[:count]
        self.prompt += [base + number // self.rules.group for number in range(count)]
        self._drawn += [(draws, first)] * count
        if self.rules.forks:  # each prompt has a snapshot
            prepare_ns = self.source.stream.prepare_ns
            self.clocks_ns += [prepare_ns[row] for row in draws.rows[: count : self.rules.group]]
        return base

    def take_waiting(self, image: int) -> int:
        """Remove and return a waiting rollout of this image, else of the next image in turn."""
        chosen = image if image in self.waiting else next(iter(self.waiting))
        line = self.waiting.pop(chosen)
        rollout = line.popleft()
        if line:
            self.waiting[chosen] = line
        return rollout

    def attempt(self, rollout: int, tries: int, *, warm: bool) -> AttemptTimes:
        """Return attempt number ``tries`` of a rollout; attempt 0 is a pool hit."""
        if not tries:
            return self.warm[rollout]
        draws, first = self._drawn[rollout]
        return self.source.attempt(draws, rollout - first, tries, warm=warm)

    def granted(self, now: int) -> float:
        """Request a create now and return the time of its grant, in ns."""
        full_ns = self.full_ns
        granted = full_ns - self.allowance_ns
        if granted > now:
            self.full_ns = full_ns + self.gap_ns
            return granted
        self.full_ns = (full_ns if full_ns > now else now) + self.gap_ns
        return now

    def claim(self, prompt: int, now: int) -> bool:
        """Take a ready sandbox of the pool; False: there is none, and a new one must be made."""
        rules = self.rules
        if rules.image_pool:
            if self._claimed[prompt] == rules.pool:
                return False
            self._claimed[prompt] += 1
            self.hits += 1
            return True
        ready = self._ready
        if not self._stock and (not ready or ready[0] > now):
            return False
        since = 0 if self._stock else ready.popleft()
        self._stock -= self._stock > 0
        self._idle_ns += now - since
        self.hits += 1
        if rules.refill_ns is not None:
            ready.append(now + rules.refill_ns)
        else:  # one after another
            latest = ready[-1] if ready else since
            ready.append((latest if latest > now else now) + (rules.refill_gap_ns or 0))
        return True

    def pods_free(self, now: int) -> int:
        """Return the number of free pods; a pod released at this instant is not free yet."""
        assert self.nodes is not None
        while 0 <= self.next_release() < now:
            self.release()
        return self.nodes.free

    def next_release(self) -> int:
        """When the next pod is free again; below 0: none is in use."""
        releases, void = self._releases, self._void
        while releases and void[releases[0]]:
            void[heappop(releases)] -= 1
        return releases[0][0] if releases else -1

    def release(self) -> None:
        """Free the pod with the next release."""
        assert self.nodes is not None
        self.nodes.let_go([heappop(self._releases)[1]])

    def occupy(self, sandbox: SimulatedSandbox) -> None:
        """Occupy the sandbox's pod, if any, until the end of clean-up."""
        if sandbox.node >= 0:
            heappush(self._releases, (sandbox.end + sandbox.cleanup, sandbox.node))

    def vacate(self, sandbox: SimulatedSandbox) -> None:
        """Take back when the sandbox's pod is released."""
        if sandbox.node >= 0:
            self._void[sandbox.end + sandbox.cleanup, sandbox.node] += 1

    def drop(self, sandbox: SimulatedSandbox, now: int) -> None:
        """End a sandbox early."""
        if sandbox.end <= now:
            return
        self.vacate(sandbox)
        self.occupy(sandbox._replace(end=now))
        lived = max(0, now - sandbox.begin)
        suspended = sandbox.suspended * lived // (sandbox.end - sandbox.begin)
        self.suspended_ns -= sandbox.suspended - suspended
        self.clocks_ns[sandbox.bill] = lived - suspended + sandbox.cleanup if lived else 0
