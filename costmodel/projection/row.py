"""Types of a projected row.

The name of each quantity ends with its unit, also of an interval or a group of quantities. ``_s2`` is square seconds.
Without a unit: a count, a share or a ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, NamedTuple

from costmodel.projection.warnings import ordered
from costmodel.recording.trial import CellIdentity
from costmodel.simulation.makespan import Makespan
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval
from costmodel.statistics.quantiles import Percentile
from costmodel.statistics.repetitions import Basis, Estimate
from costmodel.statistics.verdict import Finding
from costmodel.training.length import Length
from costmodel.workload.rescaling import Assumption, MeasuredLevels

CAUSES: Final = (
    "create",
    "ready",
    "image_pull",
    "preload",
    "dispatch",
    "slowdown",
    "contention",
    "harness",
    "throttle",
    "failures",
    "cleanup",
)
"""Causes of sandbox time: startup, dispatch, commands slower than the reference's, contention, the runner gap, waits
for a create, a quota or a pod, failures with their retries, and clean-up."""


class Trajectory(NamedTuple):
    """Latency of one successful trajectory, without think time and throttles; unrounded."""

    mean: Interval
    p50: Percentile | None
    p95: Percentile | None
    p99: Percentile | None


class ByCause(NamedTuple):
    """Time by cause, as ``breakdown.Causes`` defines it; the sum is the total. None: unknown."""

    startup: float  # create, ready, preload
    dispatch: float | None  # getting commands in and results out
    slowdown: float | None  # the commands' own time beyond the reference's; None without a reference
    contention: float | None  # waits caused by other sandboxes; None: unknown, and part of work
    work: float | None  # the rest of the commands' own time
    unsplit: float | None  # undivided actions; None where dispatch and work are known
    harness: float  # our own time between phases and commands
    queued: float  # throttled: recorded, or projected from a create rate
    think: float
    failed: float  # failed attempts with back-off
    cleanup: float | None = None  # of successes; None where clean-up is no part of occupied time
    wrapper: float | None = None  # taxtui's shell wrappers around commands, no tax; None: unknown

    def as_dict(self) -> dict[str, float | None]:
        """Return time by cause, None: unknown; without absent optional causes."""
        optional = ("unsplit", "cleanup", "wrapper")
        return {cause: time for cause, time in self._asdict().items() if time is not None or cause not in optional}


class TaxBounds(NamedTuple):
    """Lowest and highest possible tax where in-sandbox time is unknown; not a confidence interval."""

    low: float
    high: float


class WallClock(NamedTuple):
    """From the first start to the last end."""

    value: float
    low: float | None
    high: float | None
    fluid: float  # N·L/W, the essay's: as if the last worker never ran alone
    method: str
    error: float | None  # of ``value``, for the measured durations
    needs_trials: int | None = None  # successes necessary for an upper limit, where only a lower limit is known


class Steps(NamedTuple):
    """A run in training steps."""

    steps: int
    batch: int
    launched: int
    step: Makespan  # rollouts of a full step
    idle_worker_hours: float  # at the barriers: W·E[M] − B·μ, summed; 0 where there are none
    wasted_worker_hours: float | None = None  # of cut rollouts; None without over-provisioning
    low_s: float | None = None  # rollouts of a full step; None without a barrier
    high_s: float | None = None
    needs_trials: int | None = None  # as for the wall-clock


class GpuWaiting(NamedTuple):
    """Waiting time of the trainer's GPUs under one policy, by reason.

    ``stalled`` is the sandbox's part: the saving of an ideal sandbox, without delay or failure. ``generation`` is the
    further saving without think time, and ``commands`` the remaining time of commands. The three add up to the total.
    None: no think time; for the other two, the commands' own time is unknown.
    """

    wall_clock_hours: float
    waiting_gpu_hours: float
    generation_gpu_hours: float | None = None
    commands_gpu_hours: float | None = None
    stalled_gpu_hours: float | None = None
    waiting_usd: float | None = None  # None: no price of a GPU
    generation_usd: float | None = None
    commands_usd: float | None = None
    stalled_usd: float | None = None

    def priced(self, usd_hour: float | None) -> GpuWaiting:
        """Return the same with dollars at ``usd_hour`` per GPU."""
        if usd_hour is None:
            return self
        hours = self[1:5]
        return GpuWaiting(*self[:5], *(None if amount is None else amount * usd_hour for amount in hours))


class PoolUse(NamedTuple):
    """A warm pool at work."""

    hit: float  # share of attempts with a ready sandbox
    idle_sandboxes: float  # mean number
    rule: str  # rule of the refill


class Cost(NamedTuple):
    """Bill of a run. Workers and sandboxes have different clocks: clean-up, throttles, minimum billing."""

    sandbox_usd: Interval
    idle_pool_usd: float
    worker_usd: float | None  # None: the sheet prices none
    total_usd: float
    usd_per_sandbox_hour: float
    billed_ratio: float  # billed time over time in use
    sheet: str


class Versus(NamedTuple):
    """Against the baseline."""

    baseline: str  # cell id
    label: str  # the baseline's label, also where its row is not displayed
    worker_hours: Interval  # the difference
    verdict: Finding


class TailLimits(NamedTuple):
    """How much sooner and later than for the law of the trials a run may end; neither is below 0."""

    sooner_ns: float
    later_ns: float | None  # None: unbounded by the trials
    needs_trials: int | None  # necessary trials, if unbounded


class Evidence(NamedTuple):
    """Intermediate values for ``--explain``, over all trials at this length."""

    successes: Fraction  # trials; a fraction where a timeout hits some versions of a trial
    attempts: int
    held_ok_ns: Fraction
    held_failed_ns: Fraction
    failure: Fraction  # share of attempts
    dropped: Fraction  # likewise; part of the above, without a retry
    held: Estimate  # per success, in ns
    beyond: Interval  # error of the actions beyond the recorded ones, as a share of the occupied time
    basis: Basis  # of the run-to-run part of every interval
    busy_ns: Distribution  # busy time of a worker per trajectory
    usable_workers: int
    effective_workers: float
    waited_ns: float  # for creates to be let through, by all trajectories
    work_per_success_ns: Fraction | None
    tail: TailLimits  # how much the wall-clock, or a step's, hangs on jobs rarer than any trial


class Share(NamedTuple):
    """Amounts due to one cause: the saving without it, or a difference of such savings.

    Each has a 95 % interval; None: not requested, or without a price.
    """

    step_s: Interval  # wall-clock per training step
    worker_hours: Interval  # of the whole run, as the next two
    gpu_hours: Interval | None  # waiting time of GPUs
    usd: Interval | None  # GPUs, nodes, workers and sandboxes


class Attribution(NamedTuple):
    """Sandbox cost of a run in steps by cause, each from a simulation without the cause.

    ``sandbox`` is the saving of an ideal sandbox: all causes removed at once. ``interaction`` is exactly ``sandbox``
    less the sum of the causes.
    """

    causes: dict[str, Share | None]  # by name, in the order of ``CAUSES``; None: the data do not tell
    sandbox: Share
    interaction: Share
    run: Share  # totals of the run: waiting GPU-hours, and all dollars
    waiting: GpuWaiting | None  # of ``run``, split; None without GPUs
    usd_per_critical_second: float | None  # one second more in every step; None without prices
    assumptions: tuple[Assumption, ...]
    steps: int  # of the run
    simulated_steps: int  # simulated once per counterfactual
    replicates: int  # random streams on the recorded trials
    error_s: float  # half the 99.7 % interval of the simulation alone, of the wall-clock per step


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: a cell at the training run's scale. Fields are None where the data do not support a number."""

    identity: CellIdentity
    length: Length  # of projected trajectories
    label: str
    provenance: str  # measured | stand_in | imported | published | composed
    sources: tuple[str, ...]
    trials: int | None
    failures: int | None
    trajectory_s: Trajectory | None = None
    held_per_success_s: Interval | None = None
    think_s: float | None = None  # of one trajectory
    cleanup_share_left_out: float | None = None  # clean-up over occupied time of a success, where no part of it
    attempts: float = 1.0  # per trajectory
    delivered: float = 1.0  # share of trajectories with a final success
    worker_hours: Interval | None = None
    tax_worker_hours: Interval | None = None
    tax_between_worker_hours: TaxBounds | None = None  # where the tax is unknown
    by_cause_worker_hours: ByCause | None = None
    wall_clock_hours: WallClock | None = None
    steps: Steps | None = None
    gpu: dict[str, GpuWaiting] | None = None
    attribution: Attribution | None = None  # of a run in steps
    warm_pool: PoolUse | None = None
    cost: Cost | None = None
    versus: Versus | None = None
    flags: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()  # published inputs of an estimated row, with source
    levels: MeasuredLevels | None = None  # several measured concurrencies
    unused: tuple[str, ...] = ()  # options without effect here, because the source lacks their data
    evidence: Evidence | None = None

    def flagged(self, flag: str) -> Row:
        """Return the row with one more warning."""
        return replace(self, flags=ordered([*self.flags, flag]))
