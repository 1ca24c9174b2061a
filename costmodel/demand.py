"""What is asked of the model: one frozen value, checked as a whole before anything is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from costmodel.errors import DemandError
from costmodel.length import Length
from costmodel.makespan import check_counts
from costmodel.policies import POLICIES, Async, Policy, Sync


class Think(NamedTuple):
    """Idle time before each action: constant where ``sigma`` is 0, else lognormal with this median."""

    median_ns: int
    sigma: float = 0.0

    @property
    def mean_ns(self) -> float:
        """exp(σ²/2) times the median."""
        return self.median_ns * math.exp(self.sigma**2 / 2)


class Delta(NamedTuple):
    """A change whose effect is asked for: so many ns more (or less) per action, or per rollout."""

    ns: int
    per_action: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A training run to project: N trajectories on W workers, and all that bears on it. None: not asked for."""

    trajectories: int
    workers: int
    actions: int | Length | None = None  # per trajectory; None: as many as were recorded
    baseline: str | None = None  # SUBSTRATE[:key=value], to compare the other rows with
    full_speed: str | None = None  # the same, whose commands tell slowdown from work

    max_attempts: int | None = None  # None: until it succeeds
    backoff_s: float = 0.0  # the worker waits this long before it tries again
    timeout_s: float | None = None  # an attempt that is held longer is killed, and failed
    think: Think | None = None  # replaces the recorded one
    include_cleanup: bool = False  # the worker waits for the clean-up too

    quota: int | None = None  # sandboxes at a time
    create_rate: float | None = None  # sandboxes per second
    create_burst: int = 1
    warm_pool: int | None = None  # sandboxes kept ready (for each image, with group_size)
    refill_s: float | None = None  # how long a slot of the pool takes to be ready again
    refill_rate: float | None = None  # or: how many per second are made ready
    group_size: int | None = None  # rollouts of one image that start together

    batch: int | None = None  # trajectories per training step
    train_s: float = 0.0  # per training step
    policy: str | None = None  # a name in POLICIES; None: sync with a batch, else async
    over_provision: float = 0.0  # launch this share more than the batch, keep the first
    partial_rollouts: bool = False  # ... and carry the unfinished into the next step
    gpus: int | None = None
    gpu_usd_hour: float | None = None

    deltas: tuple[Delta, ...] = ()  # for the sensitivity table, besides the standard ones
    tolerance: float = 2e-3  # relative, of the makespan
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be answered; raises DemandError."""
        check_counts(self.trajectories, self.workers)
        self._check_numbers()
        self._check_combinations()

    def _check_numbers(self) -> None:
        counted = ["actions"] * (not isinstance(self.actions, Length))
        for name in (*counted, "max_attempts", "quota", "create_burst", "warm_pool", "group_size", "batch", "gpus"):
            count = getattr(self, name)
            if count is not None and (not isinstance(count, int) or count < 1):
                raise DemandError(f"{name} must be a whole number of at least 1, not {count}")
        for name in ("timeout_s", "create_rate", "refill_s", "refill_rate", "tolerance"):
            number = getattr(self, name)
            if number is not None and not 0 < number < math.inf:
                raise DemandError(f"{name} must be a number above 0, not {number}")
        for name in ("backoff_s", "train_s", "over_provision", "gpu_usd_hour"):
            number = getattr(self, name)
            if number is not None and not 0 <= number < math.inf:
                raise DemandError(f"{name} must be a number of at least 0, not {number}")
        if self.think is not None and (self.think.median_ns < 0 or not 0 <= self.think.sigma < math.inf):
            raise DemandError(f"think time must be at least 0, not {self.think.median_ns} ns, sigma {self.think.sigma}")

    def _check_combinations(self) -> None:
        if self.policy not in (None, *POLICIES):
            raise DemandError(f"policy must be one of {', '.join(POLICIES)}, not {self.policy}")
        by_step = self.train_s > 0 or self.over_provision > 0 or self.partial_rollouts or self.gpus is not None
        if self.batch is None and (by_step or self.effective_policy.barrier):
            raise DemandError("training steps, GPUs and over-provisioning need a batch: add --batch B")
        if self.gpu_usd_hour is not None and self.gpus is None:
            raise DemandError("a GPU price needs a number of GPUs: add --gpus G")
        if self.batch is not None and self.batch > self.trajectories > 0:
            raise DemandError(f"a batch of {self.batch} is more than the {self.trajectories} trajectories of the run")
        if (self.over_provision > 0 or self.partial_rollouts) and not self.effective_policy.barrier:
            raise DemandError(
                f"over-provisioning is about the barrier of a step, which --policy {self.policy} does not have"
            )
        if self.partial_rollouts and self.over_provision == 0:
            raise DemandError("partial rollouts carry over what was launched in excess: add --over-provision SHARE")
        refills = [self.refill_s, self.refill_rate, self.group_size]
        if self.warm_pool is None and any(value is not None for value in refills):
            raise DemandError("refill and group size describe a warm pool: add --warm-pool P")
        if self.warm_pool is not None and sum(value is not None for value in refills) != 1:
            raise DemandError("a warm pool needs exactly one of --refill-seconds S, --refill-rate R and --group-size G")
        if self.create_burst > 1 and self.create_rate is None:
            raise DemandError("a burst is an exception to a rate: add --create-rate R")

    @property
    def length(self) -> Length | None:
        """``actions`` as a law; None: each trajectory has as many as were recorded."""
        one = self.actions
        return one if one is None or isinstance(one, Length) else Length.constant(one)

    @property
    def effective_policy(self) -> Policy:
        """The policy asked for, or the one that a batch implies."""
        return POLICIES[self.policy or (Async.name if self.batch is None else Sync.name)]

    @property
    def usable_workers(self) -> int:
        """Workers that may hold a sandbox at the same time."""
        return self.workers if self.quota is None else min(self.workers, self.quota)
