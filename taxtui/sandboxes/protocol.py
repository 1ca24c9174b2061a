"""The two protocols that a substrate author writes, and the few values that pass through them.

A substrate does not time, log, retry or emit: the runner does all four, once. It raises only the errors of
``taxtui.errors``; each method below says which. ``python -m taxtui.sandboxes.conformance NAME[:key=value]`` checks a
class against everything that this page promises.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, Protocol, Self, runtime_checkable

import msgspec

from costmodel.pricing.instance_sizes import sold
from taxtui.errors import TaxtuiError
from taxtui.plan.spec import Command, Limits, Mode, SandboxSpec
from taxtui.recording import digest

Deadline = Literal["provider", "guest", "none"]
"""The process that ends a sandbox at its time to live if taxtui and its watchdog are gone.

``provider``: the provider itself; commands in the sandbox cannot prevent it. ``guest``: a timer or a ``sleep`` inside
the sandbox; a command there can stop it. ``none``: no process does.
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

    def flags(self) -> tuple[str, ...]:
        """The names of all that are true, and the kind of deadline, for the recording."""
        true = (name for name in self.__struct_fields__ if getattr(self, name) is True)
        return (*true, *filter(None, (_RECORDED_DEADLINES[self.deadline],)))


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and network that a substrate's sandboxes really get, where they differ from what a run asks for.

    None: as asked, or unknown.
    """

    cpus: float | None = None
    memory_mib: int | None = None
    network: Literal["full", "none"] | None = None
    sizes: Literal["", "fargate", "whole"] = ""
    """How the provider rounds up: to a size that Fargate sells, or to whole CPUs and GiB."""

    def limits(self, asked: Limits) -> Limits:
        """The limits of a sandbox for which ``asked`` is requested."""
        cpus, memory_mib = asked.cpus, asked.memory_mib
        if self.sizes == "whole":
            cpus, memory_mib = math.ceil(cpus), math.ceil(memory_mib / 1024) * 1024
        elif self.sizes and (size := sold(self.sizes, round(cpus * 1000), memory_mib)) is not None:
            cpus, memory_mib = size.cpu_milli / 1000, size.memory_mib
        return msgspec.structs.replace(
            asked,
            cpus=cpus if self.cpus is None else self.cpus,
            memory_mib=memory_mib if self.memory_mib is None else self.memory_mib,
        )


class Availability(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``check()``: usable or not, why not, and what to do about it."""

    ok: bool
    detail: str  # one line: "ready, 27.1, runc" or what is wrong
    fix: str = ""  # one line: the command or setting that helps
    version: str = ""  # of the provider and runtime; part of a cell's identity
    image: str = ""  # digest of what sandboxes are made from, "" where there is no image
    image_bytes: int = -1  # of that image, unpacked; −1 where nobody tells
    cache: Literal["cold", "node", "unknown"] = "unknown"
    holds_fixtures: bool = False  # the image already holds what the shipped tiers need: no preload
    tools: frozenset[str] | None = None  # programs in the sandbox; None = cannot be known without making one
    limits: str = ""  # what is in force: "cgroup v2", "prlimit", "none" …
    effective: Effective = Effective()  # what sandboxes get instead of the limits and network that a run asks for
    region: str = ""
    latency_ns: int = 0  # round trip to the control plane; 0 = there is none
    prices: str = ""  # the shipped price sheet that holds for it, as ``--prices`` takes it; "" where none does
    facts: dict[str, str] = {}  # anything else worth recording: daemon, kernel and SDK versions

    @classmethod
    def refused(
        cls, error: TaxtuiError, advice: str = "", *, region: str = "", facts: Mapping[str, str] | None = None
    ) -> Self:
        """Not usable, for the reason that an error gives; ``advice`` goes behind the error's own fix."""
        fix = "; ".join(filter(None, (error.fix, advice)))
        return cls(ok=False, detail=error.problem, fix=fix, region=region, facts=dict(facts or {}))


EXIT_CODES: Final = range(256)
"""All that a command can end with; any other number was forged or garbled on its way."""


class ExecResult(msgspec.Struct, frozen=True):
    """What a command did. A non-zero exit is a result; 128 + n for a command that died of signal n.

    An adapter that calls a blocking SDK in a thread fills ``started_ns`` and ``ended_ns`` with
    ``time.monotonic_ns()`` taken in that thread; 0 lets the runner use its own.

    Of a stream that is longer than ``kit.kept_output`` keeps, only beginning and end are in it, and how many bytes
    between them were dropped.

    ``wrapper_ended_ns``: when taxtui's outermost shell wrapper in the sandbox printed its last line, in nanoseconds
    since 1970 of the sandbox's own clock; −1 where there is no such wrapper, or its shell has no clock.
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
    """Something out there that carries our labels."""

    name: str
    handle: str  # the provider's own id
    run_id: str
    age_s: float
    deadline_unix_s: int | None = None


class Marks:
    """Collects the sub-steps that an adapter sees. Safe to call from any thread."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.seen: list[tuple[str, int, int]] = []
        self.notices: list[str] = []
        self.obstacle = ""
        self.connection: Literal["cold", "warm"] = "warm"
        self.queued_ns = 0
        self.node = ""  # a digest
        self._moved_bytes: dict[str, int] = {}

    def __call__(
        self, name: str, *, at_ns: int | None = None, resolution_ns: int = 0, moved_bytes: int | None = None
    ) -> None:
        """Note that ``name`` was seen at ``at_ns`` (monotonic, now by default), by a look every ``resolution_ns``.

        ``moved_bytes``: what had been moved until then, as for an image that was pulled.
        """
        if moved_bytes is not None:
            self._moved_bytes[name] = moved_bytes
        self.seen.append((name, time.monotonic_ns() if at_ns is None else at_ns, resolution_ns))

    def notice(self, text: str) -> None:
        """Note what a person should know and no error says: one line, without credentials, hosts and accounts."""
        self.notices.append(text)

    def moved(self, name: str) -> int:
        """Bytes that had been moved until a mark; −1 where nobody told."""
        return self._moved_bytes.get(name, -1)

    def on(self, node: str) -> None:
        """Note which machine runs it, where the provider tells; its name becomes a digest here."""
        self.node = digest(node)

    def obstructed(self, why: str) -> None:
        """Note what keeps a sandbox from being ready, as far as the provider says: a notice, and a timeout's reason."""
        if why != self.obstacle:
            self.obstacle = why
            self.notice(f"a sandbox is not ready yet: {why}")

    def cold(self) -> None:
        """Note that a connection had to be made for this sandbox."""
        self.connection = "cold"

    def queued(self, duration_ns: int) -> None:
        """Note waiting that the provider imposed and that could not be raised as ``Throttled``."""
        self.queued_ns += duration_ns


class Session(Protocol):
    """One persistent shell. Each command runs in a subshell of it: ``cd`` and ``exit`` do not outlive a command."""

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``. After an ``ExecTimeout`` the session is closed and raises ``SandboxLost``."""
        ...

    async def close(self) -> None:
        """End the shell and all that runs in it. Idempotent."""
        ...


class Sandbox(Protocol):
    """One isolated place to run commands."""

    name: str

    async def wait_ready(self, marks: Marks) -> None:
        """Return once commands can be sent. Raises ``ReadyTimeout``, ``SandboxLost``, ``CreateFailed``, ``Throttled``.

        The runner then runs a no-op itself: ready is when that has returned 0. After ``Throttled`` it is called again
        and goes on where it was; only the runner's wait in between is queued. An adapter that looks for many sandboxes
        at once waits out a throttle itself, once for all, and tells ``Marks.queued`` how late that made the last look.
        """
        ...

    async def exec(self, command: Command) -> ExecResult:
        """Run one command on the substrate's ordinary command path; both streams complete.

        Raises ``ExecTimeout`` after killing all that the command started, ``SandboxLost``, ``ExecFailed``,
        ``Throttled``. When cancelled it leaves no process of the command behind.
        """
        ...

    async def open_session(self) -> Session:
        """Open a persistent shell. Raises as ``exec``."""
        ...

    async def reset(self, marks: Marks) -> None:
        """Bring the sandbox back to how it was after create. Only called with the capability ``reset``.

        Raises ``ExecFailed``, ``SandboxLost``.
        """
        ...

    async def destroy(self) -> None:
        """Remove the sandbox; returns when it is confirmed gone. Idempotent. Raises ``CleanupFailed``."""
        ...


class Substrate(Protocol):
    """A provider of sandboxes. An async context manager that opens and closes its clients.

    A class is built with its ``Options``: a frozen msgspec Struct with a default for every field, forbidding
    unknown ones. ``-s name:key=value`` fills it.
    """

    name: ClassVar[str]
    Options: ClassVar[type[msgspec.Struct]]
    capabilities: Capabilities
    variant: str  # what distinguishes it from the default: runtime, transport, instance type …; else ""
    provenance: Literal["measured", "stand_in"]  # stand_in when the endpoint is a protocol stand-in

    async def __aenter__(self) -> Self:
        """Open clients. Raises ``SubstrateUnavailable``."""
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Close clients. Sandboxes are not touched."""
        ...

    async def check(self) -> Availability:
        """Look, without side effects. Never raises for an unavailable provider: it answers ``ok=False``."""
        ...

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """Ask for a sandbox; returns when the control plane has answered with a handle.

        Raises ``CreateFailed``, ``QuotaExceeded``, ``Throttled``, ``SubstrateUnavailable``. Where it raises or is
        cancelled, either nothing is left or ``find`` and ``reap`` get at it by its labels.
        """
        ...

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """Everything that carries our labels, of one run or of all, in whatever state.

        Raises ``SubstrateUnavailable``.
        """
        ...

    async def reap(self, found: Found) -> None:
        """Remove what ``find`` found. Idempotent. Raises ``CleanupFailed``."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A substrate that makes something once for a whole run: a security group, a task definition."""

    async def prepare(self, run_id: str, limits: Limits) -> None:
        """Make whatever all sandboxes of a run share, so that the first ``create`` is as fast as the others.

        The runner calls it once before the first ``create``; no trial's time includes it. Idempotent. A substrate
        that was not prepared does the same in its first ``create``. Raises as ``Substrate.create``.
        """
        ...


@runtime_checkable
class ChecksAcquire(Protocol):
    """A substrate that can say beforehand whether what sandboxes are acquired from is there: a pool, a snapshot."""

    async def check_acquire(self, acquire: str, limits: Limits) -> None:
        """Look, without side effects, for what ``--acquire`` names; its kind is one of the capabilities.

        Raises ``UsageError``, ``SubstrateUnavailable``: it names nothing, it is not there or may not be used, or its
        sandboxes have other limits than the run asks for.
        """
        ...
