"""Inputs of the simulator: the rules of docs/simulation.md as numbers."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import NamedTuple, Self

from costmodel.simulation.cluster import NodeSet
from costmodel.training.policies import Policy
from costmodel.training.run import RETRY, Demand, launched


class WarmPool(NamedTuple):
    """Sandboxes that stand ready. At most one of the last three says how they are replaced."""

    size: int  # at the start; with ``group``, for every image
    refill_ns: int | None = None  # a slot is ready again this long after it was taken
    gap_ns: int | None = None  # sandboxes are made one after another, each taking this long
    group: int | None = None  # as many rollouts share an image, and its sandboxes are not replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRules:
    """One system of workers, throttles, nodes and training steps. Durations are ns."""

    workers: int
    size: int  # rollouts that a step keeps
    policy: Policy
    group: int = 1
    cap: int | None = None  # attempts per rollout
    backoff_ns: int = 0
    gap_ns: float = 0.0  # between two creates, once the burst is used up; 0: no limit
    burst: int = 1
    pool: WarmPool | None = None
    over_provision: float = 0.0  # a step launches this share more than it keeps
    partial: bool = False
    train_ns: int = 0
    cluster: NodeSet | None = None
    timeout_ns: int = 0  # 0: none
    include_cleanup: bool = False
    instant: bool = False
    staleness: int = 0  # 0: no limit
    on_failure: str = RETRY
    suspends: bool = False
    forks: bool = False  # each prompt has a snapshot, which is prepared and billed before its rollouts start
    recycle_ns: int | None = None  # reset of a sandbox for the next rollout of its image; None: none is recycled

    @classmethod
    def of(cls, demand: Demand, without: Container[str] = ()) -> Self:
        """Rules of a training run in steps, without these causes."""
        throttled, workers = "throttle" not in without, demand.usable_workers
        if not throttled:
            workers = min(limit for limit in (demand.workers, demand.pods) if limit is not None)
        pool, policy = None, demand.effective_policy
        if demand.warm_pool is not None:
            pool = WarmPool(
                demand.warm_pool,
                None if demand.refill_s is None else round(demand.refill_s * 1e9),
                None if demand.refill_rate is None else round(1e9 / demand.refill_rate),
                demand.group_size if demand.image_pool else None,
            )
        return cls(
            workers=workers,
            size=demand.step_rollouts or demand.trajectories,
            policy=policy,
            group=demand.group_size or 1,
            cap=demand.max_attempts,
            backoff_ns=round(demand.backoff_s * 1e9),
            gap_ns=1e9 / demand.create_rate if demand.create_rate is not None and throttled else 0.0,
            burst=demand.create_burst if throttled else 1,
            pool=pool,
            over_provision=demand.over_provision if policy.barrier else 0.0,
            partial=demand.partial_rollouts and policy.barrier,
            train_ns=round(demand.train_s * 1e9),
            cluster=NodeSet.of(demand, pulls="image_pull" not in without),
            timeout_ns=round((demand.timeout_s or 0.0) * 1e9),
            include_cleanup=demand.include_cleanup,
            instant=demand.instant_claim,
            staleness=demand.staleness or 0,
            on_failure=demand.effective_on_failure,
            suspends=demand.suspend_after_s is not None,
            forks=demand.fork_s is not None and "create" not in without,
            recycle_ns=None if demand.recycle_s is None else round(demand.recycle_s * 1e9 * ("create" not in without)),
        )

    def launched(self, size: int) -> int:
        """How many rollouts a step that keeps ``size`` begins with."""
        return launched(size, self.over_provision)

    @property
    def workers_only(self) -> bool:
        """Whether rollouts wait for nothing but workers, and are never cut."""
        shared = self.cluster is not None or self.gap_ns or self.pool is not None or self.timeout_ns
        shared = shared or self.suspends or self.recycle_ns is not None
        return not shared and not self.over_provision and self.policy.barrier and self.on_failure == RETRY
