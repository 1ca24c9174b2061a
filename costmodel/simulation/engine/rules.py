"""What the engine is asked: the rules of docs/simulation.md as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from costmodel.training.policies import Policy
from costmodel.training.run import Demand


class WarmPool(NamedTuple):
    """Sandboxes kept ready. Exactly one of the last three says how they are replaced."""

    size: int  # at the start; with ``group``, for every image
    refill_ns: int | None = None  # a slot is ready again this long after it was taken
    gap_ns: int | None = None  # one at a time is made ready, each taking this long
    group: int | None = None  # so many rollouts share an image, and theirs are not replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One system of workers, throttles and steps. Durations are ns."""

    workers: int
    cap: int | None = None  # attempts per rollout
    backoff_ns: int = 0
    gap_ns: float = 0.0  # between two creates, once the burst is used up; 0: no limit
    burst: int = 1
    pool: WarmPool | None = None
    batch: int | None = None  # None: one stream of rollouts
    over_provision: float = 0.0  # a step launches this share more than it keeps
    partial: bool = False
    train_ns: int = 0
    policy: Policy

    @classmethod
    def of(cls, demand: Demand, policy: Policy | None = None) -> Rules:
        """The demand's; under another policy than its own, that one's."""
        policy = policy or demand.effective_policy
        pool = None
        if demand.warm_pool is not None:
            pool = WarmPool(
                demand.warm_pool,
                None if demand.refill_s is None else round(demand.refill_s * 1e9),
                None if demand.refill_rate is None else round(1e9 / demand.refill_rate),
                demand.group_size if demand.image_pool else None,
            )
        batch = demand.step_rollouts if policy.barrier else None
        return cls(
            workers=demand.usable_workers,
            cap=demand.max_attempts,
            backoff_ns=round(demand.backoff_s * 1e9),
            gap_ns=0.0 if demand.create_rate is None else 1e9 / demand.create_rate,
            burst=demand.create_burst,
            pool=pool,
            batch=batch,
            over_provision=0.0 if batch is None else demand.over_provision,
            partial=demand.partial_rollouts and policy.barrier,
            train_ns=round(demand.train_s * 1e9),
            policy=policy,
        )

    def smaller(self, scale: int) -> Rules:
        """A system of the same load with 1/scale of the workers, and of all that they share."""
        if scale == 1:
            return self
        pool = self.pool
        if pool is not None and pool.group is None:
            gap_ns = None if pool.gap_ns is None else pool.gap_ns * scale
            pool = pool._replace(size=round(pool.size / scale), gap_ns=gap_ns)
        return replace(
            self,
            workers=max(1, round(self.workers / scale)),
            gap_ns=self.gap_ns * scale,
            burst=max(1, round(self.burst / scale)),
            pool=pool,
            batch=None if self.batch is None else max(1, round(self.batch / scale)),
        )

    def launched(self, size: int) -> int:
        """How many rollouts a step that keeps ``size`` begins with."""
        return launched(size, self.over_provision)


def launched(size: int, over_provision: float) -> int:
    """How many rollouts a step begins with that keeps ``size``."""
    return math.ceil(size * (1 + over_provision) - 1e-9)
