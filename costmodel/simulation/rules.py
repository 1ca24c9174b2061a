"""Inputs of the simulator: the rules of docs/simulation.md as numbers."""

from __future__ import annotations

import math
from collections.abc import Container
from typing import NamedTuple, Self

from costmodel.training.run import COLOCATED, RETRY, TrainingRun, launched


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


class StepRules:
    """Workers, throttles, nodes and training steps of a run. Durations are ns."""

    def __init__(self, training_run: TrainingRun, without: Container[str] = ()) -> None:
        """Take the rules of a training run in steps, without these causes."""
        throttled, creates = "throttle" not in without, "create" not in without
        limits = training_run.workers, training_run.pods
        self.workers = training_run.usable_workers if throttled else min(limit for limit in limits if limit is not None)
        self.size = training_run.step_rollouts or training_run.trajectories  # rollouts kept per step
        self.policy = training_run.effective_policy
        self.group = training_run.group_size or 1
        self.cap = training_run.max_attempts  # per rollout
        self.backoff_ns = _ns(training_run.backoff_s)
        self.gap_ns = 0.0  # between two creates, once the burst is used up; 0: no limit
        self.burst = 1
        if throttled:
            self.burst = training_run.create_burst
            self.gap_ns = 1e9 / training_run.create_rate if training_run.create_rate is not None else 0.0
        self.pool = training_run.warm_pool  # sandboxes ready at the start; for every image with ``image_pool``
        self.image_pool = training_run.image_pool  # sandboxes are not replaced
        self.refill_ns = None if training_run.refill_s is None else _ns(training_run.refill_s)  # of a slot
        rate = training_run.refill_rate
        self.refill_gap_ns = None if rate is None else round(1e9 / rate)  # sandboxes are made one after another
        self.over_provision = training_run.over_provision if self.policy.barrier else 0.0
        self.train_ns = _ns(training_run.train_s)
        self.cluster = NodeSet.of(training_run, pulls="image_pull" not in without)
        self.fills = self.cluster is not None and self.cluster.fills
        self.timeout_ns = _ns(training_run.timeout_s or 0.0)  # 0: none
        self.include_cleanup = training_run.include_cleanup
        self.staleness = training_run.staleness or 0  # 0: no limit
        self.on_failure = training_run.on_failure or RETRY
        self.forks = training_run.fork_s is not None and creates  # snapshots are made and billed before the rollouts
        recycle_s = training_run.recycle_s
        self.recycle_ns = None if recycle_s is None else _ns(recycle_s) * creates  # None: no recycling
        shared = self.cluster, self.pool, self.recycle_ns, training_run.suspend_after_s
        waits = self.gap_ns or any(item is not None for item in shared)
        cuts = self.timeout_ns or self.over_provision or self.on_failure != RETRY
        # Whether rollouts wait for nothing but workers, and are never cut:
        self.workers_only = not waits and not cuts and self.policy.barrier

    def launched(self, size: int) -> int:
        """Return the number of rollouts launched by a step of ``size`` kept rollouts."""
        return launched(size, self.over_provision)


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
