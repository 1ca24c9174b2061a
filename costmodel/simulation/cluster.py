"""Nodes with pods, disks and a network each: where a sandbox goes, and when its image is there.

A node pulls one image after another, so that when a pull ends is known as soon as it is asked for, and needs no event.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple, Self

from costmodel.training.images import GB_PER_GIB
from costmodel.training.run import COLOCATED, PREFETCHED, PREPULLED, TrainingRun

_SHIFT = 24
_MASK = (1 << _SHIFT) - 1


class NodeSet(NamedTuple):
    """What the nodes are."""

    nodes: int
    pods: int  # of each
    near: bool = False  # a sandbox goes where its image is, if it can
    ahead: int = 0  # nodes that the images of the next step are pulled onto; 0: none is pulled ahead
    pull_ns: tuple[int, ...] = ()  # what each image takes; (): every image is everywhere
    sizes_gb: tuple[float, ...] = ()
    disk_gb: float = math.inf

    @classmethod
    def of(cls, training_run: TrainingRun, *, pulls: bool = True) -> Self | None:
        """The training run's, None without nodes; without ``pulls`` every node holds every image."""
        if training_run.nodes is None or training_run.pods_per_node is None:
            return None
        near = training_run.effective_placement in (COLOCATED, PREFETCHED)
        if (
            training_run.images is None
            or training_run.pull_gb_s is None
            or training_run.effective_placement == PREPULLED
            or not pulls
        ):
            return cls(training_run.nodes, training_run.pods_per_node)
        ahead = 0
        if training_run.effective_placement == PREFETCHED:
            ahead = min(training_run.nodes, -(-(training_run.group_size or 1) // training_run.pods_per_node))
        return cls(
            training_run.nodes,
            training_run.pods_per_node,
            near,
            ahead,
            tuple(round(size / training_run.pull_gb_s * 1e9) for size in training_run.images.sizes_gb),
            training_run.images.sizes_gb,
            math.inf if training_run.node_disk_gib is None else training_run.node_disk_gib * GB_PER_GIB,
        )


Disk = dict[int, int]
"""The images of a node, the one that was used longest ago first, with when each is there (ns)."""


class Nodes:
    """Their state; times are ns from the start of the run."""

    def __init__(self, cluster: NodeSet, disks: Sequence[Iterable[int]] = ()) -> None:
        """No pod is in use. ``disks`` are the images that the nodes hold already, in the order of their last use."""
        self._cluster = cluster
        self._used = [0] * cluster.nodes
        self._order = list(range(cluster.nodes))  # used << shift | node; those that are out of date are skipped
        heapify(self._order)
        self.free = cluster.nodes * cluster.pods
        held = disks if cluster.pull_ns and disks else [()] * cluster.nodes
        self._disks: list[Disk] = [dict.fromkeys(disk, 0) for disk in held]
        self._held_gb = [math.fsum(map(cluster.sizes_gb.__getitem__, disk)) for disk in self._disks]
        self._pulled = [0] * cluster.nodes  # when all that was asked for is there
        self._holders: dict[int, set[int]] = {}
        if cluster.near:
            for node, disk in enumerate(self._disks):
                for image in disk:
                    self._holders.setdefault(image, set()).add(node)
        self.pulled_gb = 0.0

    @property
    def pulls_ahead(self) -> bool:
        """Whether images of the next step are."""
        return self._cluster.ahead > 0

    def disks(self) -> list[list[int]]:
        """The images that nodes hold or are pulling, in the order of their last use."""
        return [list(disk) for disk in self._disks]

    def take(self, image: int, now: int, *, hit: bool = False) -> tuple[int, int]:
        """A pod for this image at ``now``: its node, and when the image is there. There is a free one."""
        cluster, used, order = self._cluster, self._used, self._order
        node = self._near(image) if cluster.near else -1
        if node >= 0:
            used[node] += 1
            if used[node] < cluster.pods:
                heappush(order, used[node] << _SHIFT | node)
        else:  # the emptiest, of several the first
            while used[order[0] & _MASK] != order[0] >> _SHIFT:
                heappop(order)
            code = order[0]
            node = code & _MASK
            used[node] = number = (code >> _SHIFT) + 1
            if number < cluster.pods:
                heapreplace(order, number << _SHIFT | node)
            else:
                heappop(order)
        self.free -= 1
        if hit or not cluster.pull_ns:
            return node, now
        disk = self._disks[node]
        if image not in disk:
            return node, self._pull(node, image, now)
        ready = disk.pop(image)
        disk[image] = ready
        return node, ready if ready > now else now

    def let_go(self, nodes: Collection[int]) -> None:
        """A pod of each of these is free again."""
        used = self._used
        for node in nodes:
            used[node] -= 1
        self.free += len(nodes)
        for node in set(nodes):
            heappush(self._order, used[node] << _SHIFT | node)

    def pull_ahead(self, images: Iterable[int], now: int) -> None:
        """Pull each onto as many nodes as a group of its rollouts needs, those whose pulls are done first."""
        idle = [when << _SHIFT | node for node, when in enumerate(self._pulled)]
        heapify(idle)
        for image in images:
            missing = self._cluster.ahead - len(self._holders.get(image, ()))
            passed: list[int] = []
            while missing > 0 and idle:
                code = heappop(idle)
                node = code & _MASK
                if image in self._disks[node]:
                    passed.append(code)
                    continue
                self._pull(node, image, now)
                passed.append(self._pulled[node] << _SHIFT | node)
                missing -= 1
            for code in passed:
                heappush(idle, code)

    def _near(self, image: int) -> int:
        """The same among those that hold the image; below 0: none of them has a free pod."""
        used, pods = self._used, self._cluster.pods
        codes = [used[node] << _SHIFT | node for node in self._holders.get(image, ()) if used[node] < pods]
        return min(codes) & _MASK if codes else -1

    def _pull(self, node: int, image: int, now: int) -> int:
        """When the image is there, which it is not, and is asked for now."""
        disk, cluster = self._disks[node], self._cluster
        size = cluster.sizes_gb[image]
        held = self._held_gb[node] + size
        while held > cluster.disk_gb and disk:
            oldest = next(iter(disk))
            del disk[oldest]
            held -= cluster.sizes_gb[oldest]
            if cluster.near:
                self._holders[oldest].discard(node)
        self._held_gb[node] = held
        ready = max(now, self._pulled[node]) + cluster.pull_ns[image]
        disk[image] = self._pulled[node] = ready
        self.pulled_gb += size
        if cluster.near:
            self._holders.setdefault(image, set()).add(node)
        return ready
