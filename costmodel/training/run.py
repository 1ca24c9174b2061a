"""The training run to project, checked as a whole before any computation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Final, NamedTuple, Self

from costmodel.errors import TrainingRunError
from costmodel.training.combinations import PREPULLED, STEP_MODEL, check_combinations
from costmodel.training.length import Length

SPREAD, COLOCATED, _ = PLACEMENTS = ("spread", "colocated", PREPULLED)
"""Choice of a sandbox's node and of the time of the image pull: docs/simulation.md."""
ACTIONS: Final = {"suspend": "suspend_after_s", "fork": "fork_s", "recycle": "recycle_s", "prebuild": "build_s"}
"""Action of a life cycle → field of ``TrainingRun``; ``prebuild`` removes builds."""
RETRY, MASK, RESAMPLE, KEEP = ON_FAILURE = ("retry", "mask", "resample", "keep")
"""Retry in place, drop the rollout, redo all rollouts of the prompt, or deliver with reward 0."""

MOST_IMAGES: Final = 1_000_000
GB_PER_GIB: Final = 2**30 / 1e9

_COUNTS: Final = (  # noqa: SIM905
    "max_attempts quota create_burst warm_pool group_size batch prompts staleness gpus nodes pods_per_node "
    "failure_burst builders"
).split()
_ABOVE_0: Final = "timeout_s create_rate refill_s refill_rate node_disk_gib pull_gb_s".split()  # noqa: SIM905
_AT_LEAST_0: Final = (  # noqa: SIM905
    "backoff_s train_s over_provision gpu_usd_hour node_usd_hour failure_rate failure_hazard run_sd suspend_after_s "
    "suspend_s resume_s suspended_usd_hour fork_s recycle_s build_s built_images"
).split()


def launched(size: int, over_provision: float) -> int:
    """Return the launched rollouts of a step that keeps ``size``."""
    return math.ceil(size * (1 + over_provision) - 1e-9)


def poisoned_groups(rate: float, group: int, burst: int = 1) -> float:
    """Return the share of groups with a failed attempt: 1 − (1 − p)ⁿ, with n bursts in a group, over its places."""
    places = range(0, burst, math.gcd(group, burst))
    return 1 - math.fsum(math.pow(1 - rate, math.ceil((place + group) / burst)) for place in places) / len(places)


class Think(NamedTuple):
    """Model time between two actions: constant if ``sigma`` is 0, else lognormal. 8 s: ``Think(8_000_000_000)``."""

    median_ns: int
    sigma: float = 0.0

    @property
    def mean_ns(self) -> float:
        return self.median_ns * math.exp(self.sigma**2 / 2)


class Suspension(NamedTuple):
    """Idle time before a suspension, and the durations of suspending and resuming."""

    after_ns: int
    suspend_ns: int
    resume_ns: int


@dataclass(frozen=True, slots=True)
class Images:
    """Size of each image in GB, as pulled and stored by a node."""

    sizes_gb: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the sizes.

        Raises:
            TrainingRunError: no size, more than a million, or a size that is not a number above 0.
        """
        if not 1 <= self.count <= MOST_IMAGES:
            raise TrainingRunError(f"a set of images has 1 to {MOST_IMAGES:,} images, not {self.count:,}")
        for size in self.sizes_gb:
            if not 0 < size < math.inf:
                raise TrainingRunError(f"the size of an image must be a number of GB above 0, not {size:g}")

    @classmethod
    def of(cls, sizes_gb: Iterable[float]) -> Self:
        return cls(tuple(map(float, sizes_gb)))

    @classmethod
    def between(cls, low_gb: float, high_gb: float, count: int) -> Self:
        """Spread ``count`` sizes evenly from ``low_gb`` to ``high_gb``. Raises ``TrainingRunError``."""
        if low_gb > high_gb:
            raise TrainingRunError(f"images of {low_gb:g} to {high_gb:g} GB: the smaller size comes first")
        step = (high_gb - low_gb) / max(1, count)
        return cls(tuple(low_gb + (number + 0.5) * step for number in range(min(count, MOST_IMAGES + 1))))

    @property
    def count(self) -> int:
        return len(self.sizes_gb)

    @property
    def largest_gb(self) -> float:
        return max(self.sizes_gb)

    @property
    def total_gb(self) -> float:
        return math.fsum(self.sizes_gb)

    def __str__(self) -> str:
        low, high = min(self.sizes_gb), self.largest_gb
        return f"{self.count:,} of {f'{low:.3g}' if low == high else f'{low:.3g}-{high:.3g}'} GB"


class Policy(NamedTuple):
    """Order of rollouts and training, as docs/simulation.md defines it. GPUs wait outside of training."""

    name: str  # for ``--policy``
    barrier: bool  # a step waits for the last rollout; False: a stream of rollouts
    overlaps: bool  # rollouts of the next step run during training


SYNC: Final = Policy("sync", barrier=True, overlaps=False)
ASYNC: Final = Policy("async", barrier=False, overlaps=True)
POLICIES: Final = {policy.name: policy for policy in (SYNC, Policy("one-step-off", barrier=True, overlaps=True), ASYNC)}
"""Policies by name, in the order of help texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How exactly a row is computed: random numbers and effort of a simulation, no part of the question.

    Raises:
        TrainingRunError: ``tolerance`` or ``effort`` is no number above 0.
    """

    seed: int = 0
    tolerance: float = 2e-3  # relative, of the makespan
    effort: float = 1.0  # share of the usual simulation, for answers of many rows

    def __post_init__(self) -> None:
        for name in ("tolerance", "effort"):
            if not 0 < (number := getattr(self, name)) < math.inf:
                raise TrainingRunError(f"{name} must be a number above 0, not {number}")

    def share(self, part: float) -> Precision:
        """Return the same precision with ``part`` of the effort."""
        return replace(self, effort=self.effort * part)


USUAL: Final = Precision()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """A training run: N trajectories on W workers, and its settings. None: not set."""

    trajectories: int
    workers: int
    actions: int | Length | None = None  # per trajectory; None: as many as were recorded
    baseline: str | None = None  # SUBSTRATE[:key=value], compared with all rows
    full_speed: str | None = None  # likewise; its commands count as full speed

    max_attempts: int | None = None  # None: until success
    backoff_s: float = 0.0  # wait of the worker before another attempt
    timeout_s: float | None = None  # limit of an attempt after its wait for a token; longer attempts fail
    think: Think | None = None  # replaces recorded think time
    include_cleanup: bool = False  # the worker waits for the clean-up too

    quota: int | None = None  # sandboxes at a time
    create_rate: float | None = None  # sandboxes per second
    create_burst: int = 1
    warm_pool: int | None = None  # sandboxes kept ready (for each image, with group_size)
    refill_s: float | None = None  # time to refill a slot of the pool
    refill_rate: float | None = None  # or: sandboxes made ready per second

    batch: int | None = None  # trajectories per training step; None with ``prompts``: all their rollouts
    prompts: int | None = None  # per training step
    group_size: int | None = None  # rollouts of a prompt, with a common start and image
    train_s: float = 0.0  # per training step
    policy: str | None = None  # a name in POLICIES; None: sync with a batch, else async
    staleness: int | None = None  # async: rollouts of a step start once the step this many before it is trained
    over_provision: float = 0.0  # share launched beyond the batch; the first to end are used
    gpus: int | None = None
    gpu_usd_hour: float | None = None
    think_correlation: float = 0.0  # of log think time between rollouts of a prompt

    nodes: int | None = None  # machines for sandboxes
    pods_per_node: int | None = None
    node_usd_hour: float | None = None
    node_disk_gib: float | None = None  # for images, of one node; None: enough for all
    images: Images | None = None  # each prompt uses one image
    pull_gb_s: float | None = None  # pulled and unpacked, by one node
    placement: str | None = None  # a name in PLACEMENTS; None: spread
    failure_rate: float | None = None  # share of attempts; replaces the recorded failures
    failure_hazard: float | None = None  # or: failures per hour of a sandbox
    failure_burst: int = 1  # first attempts of a step with a common failure, neighbours in the queue
    on_failure: str | None = None  # a name in ON_FAILURE; None: as recorded; with a failure_rate, retry

    suspend_after_s: float | None = None  # model time before a suspension
    suspend_s: float = 0.0
    resume_s: float = 0.0  # before the next action
    suspended_usd_hour: float | None = None  # of a suspended sandbox; None: as the price sheet charges for its disk
    fork_s: float | None = None  # start of a sandbox from its prompt's snapshot, instead of create, ready and preload
    recycle_s: float | None = None  # reset of a sandbox for the next rollout of its image, instead of create and ready
    build_s: float | None = None  # of an image, on its first use
    builders: int | None = None  # builds at a time; None: without limit
    built_images: int = 0  # images built before the run

    run_sd: float | None = None  # relative sd between repetitions; None: measured from three on, else the shipped sd
    precision: Precision = USUAL

    def __post_init__(self) -> None:
        for name, count, minimum in (("trajectories", self.trajectories, 0), ("workers", self.workers, 1)):
            if not isinstance(count, int) or isinstance(count, bool) or count < minimum:
                raise TrainingRunError(f"{name} must be a whole number of at least {minimum}, not {count}")
        for name in (*_COUNTS, *["actions"] * (not isinstance(self.actions, Length))):
            count = getattr(self, name)
            if count is not None and (not isinstance(count, int) or count < 1):
                raise TrainingRunError(f"{name} must be a whole number of at least 1, not {count}")
        for names, lowest, words in ((_ABOVE_0, 1e-12, "above 0"), (_AT_LEAST_0, 0.0, "of at least 0")):
            for name in names:
                number = getattr(self, name)
                least, most = (0.0, 2**63 / 1e9) if name.endswith("_s") else (1e-12, 1e12)  # 292 years in ns
                if number is not None and not (number == lowest or max(least, lowest) <= number <= most):
                    raise TrainingRunError(f"{name} must be a number {words} ({least:g} to {most:.2g}), not {number}")
        if self.think is not None and (self.think.median_ns < 0 or not 0 <= self.think.sigma < math.inf):
            raise TrainingRunError(
                f"think time must be at least 0, not {self.think.median_ns} ns, sigma {self.think.sigma}"
            )
        if not 0 <= self.think_correlation <= 1:
            raise TrainingRunError(f"think_correlation must be from 0 to 1, not {self.think_correlation}")
        if self.failure_rate is not None and self.failure_rate >= 1:
            raise TrainingRunError(f"failure_rate must be below 1, not {self.failure_rate}: nothing would ever succeed")
        for name, choices in (("policy", POLICIES), ("placement", PLACEMENTS), ("on_failure", ON_FAILURE)):
            if getattr(self, name) not in (None, *choices):
                raise TrainingRunError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)}")
        check_combinations(self)

    @property
    def step_model(self) -> bool:
        """Whether the simulation of steps answers: closed forms know neither its fields nor waits within a step."""
        if self.step_rollouts is None:
            return False
        waits = self.create_rate is not None or self.warm_pool is not None or self.over_provision > 0
        overlaps = self.train_s > 0 and self.effective_policy.overlaps
        own = (field for field in fields(self) if field.name in STEP_MODEL.split())
        return waits or overlaps or any(getattr(self, field.name) != field.default for field in own)

    @property
    def step_rollouts(self) -> int | None:
        """Kept trajectories of a training step; None: no steps."""
        if self.prompts is not None and self.group_size is not None:
            return self.prompts * self.group_size
        return self.batch

    @property
    def pods(self) -> int | None:
        """Capacity of the nodes in sandboxes; None: no nodes."""
        return None if self.nodes is None or self.pods_per_node is None else self.nodes * self.pods_per_node

    @property
    def disk_gb(self) -> float:
        """Disk of a node for images; infinite if unset."""
        return math.inf if self.node_disk_gib is None else self.node_disk_gib * GB_PER_GIB

    @property
    def suspension(self) -> Suspension | None:
        """Times of suspensions; None: no suspensions."""
        if self.suspend_after_s is None:
            return None
        return Suspension(*(round(s * 1e9) for s in (self.suspend_after_s, self.suspend_s, self.resume_s)))

    @property
    def think_varies(self) -> bool:
        return self.think is not None and self.think.sigma > 0

    @property
    def image_pool(self) -> bool:
        """Whether the warm pool is separate for each image and is not refilled."""
        return self.warm_pool is not None and self.refill_s is None and self.refill_rate is None

    @property
    def length(self) -> Length | None:
        """``actions`` as a distribution; None: as recorded."""
        actions = self.actions
        return actions if actions is None or isinstance(actions, Length) else Length.constant(actions)

    @property
    def effective_policy(self) -> Policy:
        return POLICIES[self.policy] if self.policy else ASYNC if self.step_rollouts is None else SYNC

    @property
    def usable_workers(self) -> int:
        """Workers that may hold a sandbox at the same time."""
        return min(limit for limit in (self.workers, self.quota, self.pods) if limit is not None)

    @property
    def host_concurrency(self) -> int:
        """Sandboxes on one host: at most the pods of a node if nodes are set, else all."""
        in_use = min(self.usable_workers, max(1, self.trajectories))
        return in_use if self.pods_per_node is None else min(in_use, self.pods_per_node)
