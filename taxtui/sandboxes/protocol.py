"""Protocols for a substrate author, and their values.

A substrate does not time, log, retry or emit: the runner does. A substrate raises only the errors of ``taxtui.errors``;
the docstring of each method lists them. ``python -m taxtui.sandboxes.conformance NAME[:key=value]`` checks a class
against this page.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, Protocol, Self, runtime_checkable

import msgspec

from costmodel import sold_size
from taxtui.errors import TaxtuiError
from taxtui.plan.spec import Command, Limits, Mode, Operation, SandboxSpec
from taxtui.recording import digest

Deadline = Literal["provider", "guest", "none"]
"""The process that ends a sandbox at the deadline if taxtui and the watchdog are gone.

``provider``: the provider; commands in the sandbox cannot prevent it. ``guest``: a timer or a ``sleep`` inside the
sandbox; a command there can stop the timer. ``none``: no process.
"""
_RECORDED_DEADLINES: Final = {"provider": "server_side_deadline", "guest": "guest_deadline", "none": ""}


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Capabilities of a substrate. The conformance suite checks each."""

    split_streams: bool = True  # stdout and stderr arrive apart
    deadline: Deadline = "none"
    idempotent_create: bool = True  # a second create under the same name cannot make a second sandbox
    confirms_gone: bool = True  # destroy returns when the sandbox is gone, not when the request was accepted
    bash: bool = True
    paid: bool = False
    acquire: tuple[str, ...] = ("create",)
    modes: tuple[Mode, ...] = ("exec", "session")
    max_concurrency: int | None = None
    lifecycle: tuple[Operation, ...] = ()  # optional operations, see taxtui.sandboxes.lifecycle
    suspend_loses: tuple[Literal["processes", "sessions"], ...] = ()  # state of a suspended sandbox

    def flags(self) -> tuple[str, ...]:
        """Names of all true capabilities, and the kind of deadline, for the recording."""
        true = (name for name in self.__struct_fields__ if getattr(self, name) is True)
        return (*true, *filter(None, (_RECORDED_DEADLINES[self.deadline],)))


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and network of a substrate's sandboxes, where different from the request of a run.

    None: as requested, or unknown.
    """

    cpus: float | None = None
    memory_mib: int | None = None
    network: Literal["full", "none"] | None = None
    sizes: Literal["", "fargate", "whole"] = ""
    """Rounding by the provider: up to a size that Fargate sells, or up to whole CPUs and GiB."""

    def limits(self, requested: Limits) -> Limits:
        """The limits of a sandbox for which ``requested`` is requested."""
        cpus, memory_mib = requested.cpus, requested.memory_mib
        if self.sizes == "whole":
            cpus, memory_mib = math.ceil(cpus), math.ceil(memory_mib / 1024) * 1024
        elif self.sizes and (size := sold_size(self.sizes, round(cpus * 1000), memory_mib)) is not None:
            cpus, memory_mib = size.cpu_milli / 1000, size.memory_mib
        return msgspec.structs.replace(
            requested,
            cpus=cpus if self.cpus is None else self.cpus,
            memory_mib=memory_mib if self.memory_mib is None else self.memory_mib,
        )


class Availability(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``check()``: usable or not, the reason, and the fix."""

    ok: bool
    detail: str  # a single line: "ready, 27.1, runc", or the problem
    fix: str = ""  # a single line: a command or setting
    version: str = ""  # of the provider and runtime; part of a cell's identity
    image: str = ""  # digest of the sandboxes' image, "" without an image
    image_bytes: int = -1  # of the image, unpacked; −1 where unknown
    cache: Literal["cold", "node", "unknown"] = "unknown"
    holds_fixtures: bool = False  # the image has the fixtures of the shipped tiers: no preload
    tools: frozenset[str] | None = None  # programs in the sandbox; None = unknown without a sandbox
    limits: str = ""  # in force: "cgroup v2", "cgroup v1", "none" …
    effective: Effective = Effective()  # limits and network where different from the request
    region: str = ""
    latency_ns: int = 0  # round trip to the control plane; 0 = there is none
    prices: str = ""  # the name of the shipped price sheet, as for ``--prices``; "" without one
    facts: dict[str, str] = {}  # anything else worth recording: daemon, kernel and SDK versions

    @classmethod
    def refused(
        cls, error: TaxtuiError, advice: str = "", *, region: str = "", facts: Mapping[str, str] | None = None
    ) -> Self:
        """Not usable for an error's reason; ``advice`` is added to the error's fix."""
        fix = "; ".join(filter(None, (error.fix, advice)))
        return cls(ok=False, detail=error.problem, fix=fix, region=region, facts=dict(facts or {}))


EXIT_CODES: Final = range(256)
"""Every valid exit code; any other number is forged or garbled."""


class ExecResult(msgspec.Struct, frozen=True):
    """The result of a command. A non-zero exit code is a result; 128 + n after death by signal n.

    An adapter with a blocking SDK sets ``started_ns`` and ``ended_ns`` to ``time.monotonic_ns()`` of the calling
    thread; with 0 the runner reads the clock.

    A stream beyond the limit of ``kit.kept_output`` has only the beginning and the end, and the number of dropped
    bytes.

    ``wrapper_ended_ns``: time of the last line of taxtui's outermost shell wrapper, in nanoseconds since 1970 by the
    sandbox's clock; −1 without such a wrapper, or without a clock in its shell.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    started_ns: int = 0
    ended_ns: int = 0
    stdout_dropped: int = 0
    stderr_dropped: int = 0
    wrapper_ended_ns: int = -1


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A sandbox, or another resource of the provider, with taxtui's labels."""

    name: str
    handle: str  # the provider's own id
    run_id: str
    age_s: float
    deadline_unix_s: int | None = None


class Marks:
    """Collects the milestones of an adapter. Safe to call from any thread."""

    def __init__(self) -> None:
        """Begin without milestones."""
        self.seen: list[tuple[str, int, int]] = []
        self.notices: list[str] = []
        self.obstacle = ""
        self.connection: Literal["cold", "warm"] = "warm"
        self.queued_ns = 0
        self.node = ""  # a digest
        self.moved_bytes: dict[str, int] = {}  # until a milestone, if known

    def __call__(
        self, name: str, *, at_ns: int | None = None, resolution_ns: int = 0, moved_bytes: int | None = None
    ) -> None:
        """Record the milestone ``name`` at ``at_ns`` (monotonic, now by default), seen by a look every
        ``resolution_ns``.

        ``moved_bytes``: bytes moved until then, for example of a pulled image.
        """
        if moved_bytes is not None:
            self.moved_bytes[name] = moved_bytes
        self.seen.append((name, time.monotonic_ns() if at_ns is None else at_ns, resolution_ns))

    def notice(self, text: str) -> None:
        """Record a notice for people: one line, without credentials, hosts and accounts."""
        self.notices.append(text)

    def on(self, node: str) -> None:
        """Record a digest of the name of the sandbox's machine, if the provider reports the name."""
        self.node = digest(node)

    def obstructed(self, why: str) -> None:
        """Record the reason why a sandbox is not ready yet: a notice, and the reason of a timeout."""
        if why != self.obstacle:
            self.obstacle = why
            self.notice(f"a sandbox is not ready yet: {why}")

    def cold(self) -> None:
        """Record a new connection for this sandbox."""
        self.connection = "cold"

    def queued(self, duration_ns: int) -> None:
        """Record waiting imposed by the provider, without a ``Throttled`` error."""
        self.queued_ns += duration_ns


class Session(Protocol):
    """A persistent shell. Each command runs in a subshell: ``cd`` and ``exit`` do not outlive a command."""

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``. After an ``ExecTimeout`` the session is closed and raises ``SandboxLost``."""
        ...

    async def close(self) -> None:
        """End the shell with all processes. Idempotent."""
        ...


class Sandbox(Protocol):
    """An isolated environment for commands."""

    name: str

    async def wait_ready(self, marks: Marks) -> None:
        """Return once commands can be sent. Raises ``ReadyTimeout``, ``SandboxLost``, ``CreateFailed``, ``Throttled``.

        The runner then runs a no-op: the sandbox is ready when the no-op has returned 0. After ``Throttled`` the runner
        waits and calls again, and the adapter continues; only the runner's wait counts as throttled. An adapter with a
        shared lookup for many sandboxes waits out a throttle itself, and reports the delay to ``Marks.queued``.
        """
        ...

    async def exec(self, command: Command) -> ExecResult:
        """Run a command on the substrate's ordinary command path; both streams complete.

        Raises ``ExecTimeout`` after killing all processes of the command, ``SandboxLost``, ``ExecFailed``,
        ``Throttled``. A cancelled call leaves no process of the command behind.
        """
        ...

    async def open_session(self) -> Session:
        """Open a persistent shell. Raises as ``exec``."""
        ...

    async def destroy(self) -> None:
        """Remove the sandbox; return when the provider confirms the end. Idempotent. Raises ``CleanupFailed``."""
        ...


class Substrate(Protocol):
    """A provider of sandboxes. As an async context manager a substrate opens and closes clients.

    A class is built with its ``Options``: a frozen msgspec Struct with a default for every field, forbidding unknown
    fields. ``-s name:key=value`` sets a field.
    """

    name: ClassVar[str]
    Options: ClassVar[type[msgspec.Struct]]
    capabilities: Capabilities
    variant: str  # the difference from the default: runtime, transport, instance type …; else ""
    provenance: Literal["measured", "stand_in"]  # stand_in when the endpoint is a protocol stand-in

    async def __aenter__(self) -> Self:
        """Open clients. Raises ``SubstrateUnavailable``."""
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Close clients. Sandboxes are not touched."""
        ...

    async def check(self) -> Availability:
        """Look, without side effects. For an unavailable provider return ``ok=False``; never raise."""
        ...

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """Request a sandbox; return when the control plane has answered with a handle.

        Raises ``CreateFailed``, ``QuotaExceeded``, ``Throttled``, ``SubstrateUnavailable``. After an error or a
        cancellation, either no sandbox exists, or ``find`` lists the sandbox by label.
        """
        ...

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """All resources with taxtui's labels, of one run or of all, in any state.

        Raises ``SubstrateUnavailable``.
        """
        ...

    async def reap(self, entry: Found, /) -> None:
        """Remove an entry of ``find``. Idempotent. Raises ``CleanupFailed``."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A substrate with run-level set-up: a security group, a task definition."""

    async def prepare(self, run_id: str, limits: Limits) -> None:
        """Set up the shared resources of a run's sandboxes: the first ``create`` is then as fast as later creates.

        The runner calls this once, before the first ``create`` and outside of every trial. Idempotent. Without
        ``prepare`` the first ``create`` does the same. Raises as ``Substrate.create``.
        """
        ...


@runtime_checkable
class ChecksAcquire(Protocol):
    """A substrate with a check of ``--acquire`` before the run."""

    async def check_acquire(self, acquire: str, limits: Limits) -> None:
        """Look up the pool or snapshot of ``--acquire``, without side effects; the kind is one of the capabilities.

        Raises ``UsageError``, ``SubstrateUnavailable``: the pool or snapshot has no name, does not exist, may not be
        used, or differs from the requested limits.
        """
        ...
