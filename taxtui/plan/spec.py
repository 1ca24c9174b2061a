"""The plan of a run, as frozen data without files, clocks and providers.

``scenario.py`` turns a TOML file into a :class:`Plan`; the runner turns a plan into trials; a substrate is handed
one :class:`SandboxSpec` per sandbox and one :class:`Command` per action.
"""

from __future__ import annotations

import hashlib
import math
from typing import Annotated, Final, Literal

import msgspec

from costmodel import MAX_INT, events
from taxtui.plan.arrivals import Arrival

Mode = Literal["exec", "session"]
Operation = Literal["suspend", "snapshot", "build"]
"""An optional operation of a substrate: ``taxtui.sandboxes.lifecycle``."""

FIXTURES_ENV: Final = "TAXTUI_FIXTURES"
"""In every sandbox: the folder of attrs.git and wheels/ (read-only); unset without fixtures."""


Label = Annotated[str, msgspec.Meta(max_length=events.MAX_LABEL)]
"""A text that a recording can hold."""
Recordable = Annotated[int, msgspec.Meta(ge=-MAX_INT, le=MAX_INT)]
"""A whole number within a recording's bounds."""
Positive = Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One shell script for ``bash -c``, or ``sh -c`` where the sandbox has no bash.

    The working directory is writable; standard input is ``stdin``, then end of file.
    """

    script: str
    timeout_s: float = 60.0
    stdin: bytes = b""


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command of a tier, with the expected result."""

    name: str
    run: str
    expect_exit: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    expect_stdout: str = ""  # a substring; "{nonce}": the trial's nonce
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=MAX_INT / 1e9)] | None = None  # the plan's where None


class Tier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workload: steps before the first action, then a cycle, repeated up to the number of actions."""

    name: str
    title: str
    requires: tuple[str, ...] = ("bash",)  # programs needed in the sandbox
    network: bool = False
    think: str = ""  # default idle time between actions, as for ``--think``
    preload: str = ""  # idempotent; a no-op in an image with the tier
    setup: tuple[Step, ...] = ()
    cycle: tuple[Step, ...]

    @property
    def digest(self) -> str:
        """16 hex digits over the work of the tier, without title and think time."""
        body = msgspec.msgpack.encode((self.name, self.requires, self.network, self.preload, self.setup, self.cycle))
        return hashlib.sha256(body).hexdigest()[:16]

    @property
    def uses_fixtures(self) -> bool:
        """Whether any script uses the folder in ``TAXTUI_FIXTURES``."""
        return any(FIXTURES_ENV in script for script in (self.preload, *(s.run for s in self.setup + self.cycle)))


class ThinkTime(msgspec.Struct, frozen=True, kw_only=True):
    """Idle time between actions: constant (``sigma`` 0), or lognormal with this median."""

    median_ns: int = 0
    sigma: float = 0.0
    suspend_after_ns: int | None = None  # the sandbox is suspended in the rest of a longer pause; None: never

    @property
    def mean_ns(self) -> float:
        """exp(σ²/2) times the median, the mean of a lognormal."""
        return self.median_ns * math.exp(self.sigma**2 / 2)

    def __str__(self) -> str:
        """The text for ``--think``, then the threshold of a suspension: ``8s,suspend:5s``."""
        median = f"{self.median_ns / 1e9:g}s"
        text = f"lognormal:{median},{self.sigma:g}" if self.sigma else median
        return text if self.suspend_after_ns is None else f"{text},suspend:{self.suspend_after_ns / 1e9:g}s"


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of each sandbox, by default the paper's 1 vCPU and 1 GiB, and of the kept output."""

    cpus: Annotated[float, msgspec.Meta(gt=0, le=MAX_INT / 1000)] = 1.0  # thousandths are recorded
    memory_mib: Positive = 1024
    pids: Positive = 512
    output_mib: Annotated[int, msgspec.Meta(ge=1, le=16)] = 16  # of each stream's beginning; all bytes are counted


class SubstrateRef(msgspec.Struct, frozen=True, kw_only=True):
    """A substrate by name, with options: ``docker:runtime=runsc`` on the command line."""

    name: str
    options: dict[str, str] = {}

    def __str__(self) -> str:
        """The text for ``-s``."""
        return ":".join([self.name, ",".join(f"{k}={v}" for k, v in sorted(self.options.items()))]).rstrip(":")


class CellPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A cell to measure, with the number of trials."""

    substrate: SubstrateRef
    tier: Tier
    actions: int
    mode: Mode = "exec"
    concurrency: int = 1
    arrival: Arrival = Arrival()
    think: ThinkTime = ThinkTime()
    acquire: str = "create"  # create | reset | pool:NAME | snapshot:ID
    trials: int = 100
    warmup: int = 1

    @property
    def action_steps(self) -> list[Step]:
        """The commands of a trajectory after the set-up: the tier's cycle, again and again."""
        cycle = self.tier.cycle
        return [cycle[number % len(cycle)] for number in range(self.actions)]


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a scenario and its plan share."""

    name: Label = ""
    limits: Limits = Limits()
    seed: Recordable = 0
    bracket: bool = True
    max_cost_usd: Annotated[float, msgspec.Meta(gt=0, le=MAX_INT)] | None = None
    max_sandboxes: Positive | None = None
    repeat: Positive = 1  # repetitions, each with new processes, connections and seed
    workers: Positive = 1  # measuring processes, with shares of each cell's concurrency


class Plan(RunSettings, frozen=True, kw_only=True):
    """Everything a run will do; the same plan and seed give the same order of blocks."""

    cells: tuple[CellPlan, ...]
    timeout_s: float = 120.0  # per command
    create_timeout_s: float = 300.0  # create and ready together, without waits for a throttle
    budget_s: float | None = None  # stop launching after this
    lifecycle: tuple[Operation, ...] = ()  # operations measured in each trial

    def warm_ups(self, cell: CellPlan) -> int:
        """Return the number of warm-ups of a cell: each worker warms up connections."""
        return cell.warmup * min(self.workers, cell.concurrency)


class SandboxSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The request for one sandbox."""

    name: str  # taxtui-<run>-<trial>, chosen before the request
    labels: dict[str, str]
    limits: Limits
    ttl_s: float  # the provider destroys the sandbox after this time
    network: bool = False
    acquire: str = "create"
    env: dict[str, str] = {}
