"""Nodes with pods, a disk and a network each: the placement of a sandbox, and the arrival of its image.

A node pulls one image after another. The end of a pull is therefore known at its request, and needs no event.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from heapq import heapreplace
from typing import NamedTuple, Self

from costmodel.training.run import COLOCATED, TrainingRun


class NodeSet(NamedTuple):
    """Number, size and images of the nodes."""

    nodes: int
    pods: int  # of each
    near: bool = False  # prefer a node with the image
    pull_ns: tuple[int, ...] = ()  # pull and build time per image; (): every image is everywhere
    sizes_gb: tuple[float, ...] = ()
    disk_gb: float = math.inf
    build_ns: int = 0  # on first use of an image; 0: every image is built
    builders: int = 0  # builds at a time; 0: without limit
    built: int = 0  # so many images are built before the run

    @property
    def fills(self) -> bool:
        """Whether images are pulled or built, which makes early steps slower than late steps."""
        return bool(self.pull_ns or self.build_ns)

    @classmethod
    def of(cls, training_run: TrainingRun, *, pulls: bool = True) -> Self | None:
        """The training run's, None without nodes; without ``pulls`` every image is built, and every node holds it."""
        if training_run.nodes is None or training_run.pods_per_node is None:
            return None
        cluster = cls(training_run.nodes, training_run.pods_per_node)
        if training_run.build_s and pulls:
            build_ns, builders = round(training_run.build_s * 1e9), training_run.builders or 0
            cluster = cluster._replace(build_ns=build_ns, builders=builders, built=training_run.built_images)
        if training_run.images is None or training_run.pull_gb_s is None or not pulls:
            return cluster
        return cluster._replace(
            near=training_run.placement == COLOCATED,
            pull_ns=tuple(round(size / training_run.pull_gb_s * 1e9) for size in training_run.images.sizes_gb),
            sizes_gb=training_run.images.sizes_gb,
            disk_gb=training_run.disk_gb,
        )


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
