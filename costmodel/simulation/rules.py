"""Inputs of the simulator: the rules of docs/simulation.md as numbers."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import NamedTuple, Self

from costmodel.simulation.cluster import NodeSet
from costmodel.training.run import RETRY, Policy, TrainingRun, launched


class WarmPool(NamedTuple):
    """Sandboxes ready in advance. At most one of the last three fields says how a taken sandbox is replaced."""

    size: int  # at the start; with ``group``, for every image
    refill_ns: int | None = None  # time to refill a slot
    gap_ns: int | None = None  # time to make a sandbox, one after another
    group: int | None = None  # rollouts per image; sandboxes are not replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRules:
    """Workers, throttles, nodes and training steps of a run. Durations are ns."""

    workers: int
    size: int  # rollouts kept per step
    policy: Policy
    group: int = 1
    cap: int | None = None  # attempts per rollout
    backoff_ns: int = 0
    gap_ns: float = 0.0  # between two creates, once the burst is used up; 0: no limit
    burst: int = 1
    pool: WarmPool | None = None
    over_provision: float = 0.0  # excess share of launched rollouts
    train_ns: int = 0
    cluster: NodeSet | None = None
    timeout_ns: int = 0  # 0: none
    include_cleanup: bool = False
    staleness: int = 0  # 0: no limit
    on_failure: str = RETRY
    suspends: bool = False
    forks: bool = False  # each prompt has a snapshot, prepared and billed before its rollouts start
    recycle_ns: int | None = None  # reset time of a sandbox for the next rollout of its image; None: no recycling

    @classmethod
    def of(cls, training_run: TrainingRun, without: Container[str] = ()) -> Self:
        """Rules of a training run in steps, without these causes."""
        throttled, workers = "throttle" not in without, training_run.usable_workers
        if not throttled:
            workers = min(limit for limit in (training_run.workers, training_run.pods) if limit is not None)
        pool, policy = None, training_run.effective_policy
        if training_run.warm_pool is not None:
            pool = WarmPool(
                training_run.warm_pool,
                None if training_run.refill_s is None else round(training_run.refill_s * 1e9),
                None if training_run.refill_rate is None else round(1e9 / training_run.refill_rate),
                training_run.group_size if training_run.image_pool else None,
            )
        return cls(
            workers=workers,
            size=training_run.step_rollouts or training_run.trajectories,
            policy=policy,
            group=training_run.group_size or 1,
            cap=training_run.max_attempts,
            backoff_ns=round(training_run.backoff_s * 1e9),
            gap_ns=1e9 / training_run.create_rate if training_run.create_rate is not None and throttled else 0.0,
            burst=training_run.create_burst if throttled else 1,
            pool=pool,
            over_provision=training_run.over_provision if policy.barrier else 0.0,
            train_ns=round(training_run.train_s * 1e9),
            cluster=NodeSet.of(training_run, pulls="image_pull" not in without),
            timeout_ns=round((training_run.timeout_s or 0.0) * 1e9),
            include_cleanup=training_run.include_cleanup,
            staleness=training_run.staleness or 0,
            on_failure=training_run.on_failure or RETRY,
            suspends=training_run.suspend_after_s is not None,
            forks=training_run.fork_s is not None and "create" not in without,
            recycle_ns=None
            if training_run.recycle_s is None
            else round(training_run.recycle_s * 1e9 * ("create" not in without)),
        )

    def launched(self, size: int) -> int:
        """Return the number of rollouts launched by a step of ``size`` kept rollouts."""
        return launched(size, self.over_provision)

    @property
    def workers_only(self) -> bool:
        """Whether rollouts wait for nothing but workers, and are never cut."""
        shared = self.cluster is not None or self.gap_ns or self.pool is not None or self.timeout_ns
        shared = shared or self.suspends or self.recycle_ns is not None
        return not shared and not self.over_provision and self.policy.barrier and self.on_failure == RETRY
