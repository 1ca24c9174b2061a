"""A substrate without sandboxes, for your tests: instant, in this process, with failures on request.

::

    fake = FakeSubstrate(FakeOptions(create_s=0.2))
    fake.answer = lambda command: ExecResult(0, b"done\\n", b"")
    fake.fail("create", Throttled("slow down", retry_after_s=1.0), times=2)
    ...
    assert fake.alive == {}  # nothing was left behind

The fake records calls and runs no command. The conformance suite's checks of sandboxes pass, checks of shells fail.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import ExecTimeout, SandboxLost
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.kit import labels
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.protocol import Availability, Capabilities, ExecResult, Found, Marks

Call = Literal["create", "created", "ready", "exec", "open_session", "reset", "destroy", "reap"]
Hook = Callable[[], Awaitable[None]]

_ECHO: Final = re.compile(r"echo (\w+)")


class FakeOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long each call takes, in seconds of the event loop's clock."""

    create_s: float = 0.0
    ready_s: float = 0.0
    exec_s: float = 0.0


async def nothing() -> None:
    """The default hook."""


def echoing(command: Command) -> ExecResult:
    """Exit code 0; the output of ``echo WORD``, and none of anything else."""
    match = _ECHO.fullmatch(command.script)
    return ExecResult(0, f"{match[1]}\n".encode() if match else b"", b"")


class FakeSubstrate:
    """Sandboxes are entries of ``alive``: name → run id. An entry at the end of a test is a leak.

    ``calls`` and ``commands`` are the requests, in order. A hook is awaited inside the call, before the call has any
    effect (``created_hook``: after the sandbox exists, before create answers). A hook may wait for an event, raise, or
    be cancelled.
    """

    name: ClassVar[str] = "fake"
    Options: ClassVar[type[msgspec.Struct]] = FakeOptions
    variant = ""
    provenance: Literal["measured", "stand_in"] = "stand_in"

    def __init__(self, options: FakeOptions | None = None) -> None:
        self.options = options or FakeOptions()
        self.capabilities = Capabilities(acquire=("create", "reset"))
        self.availability = Availability(ok=True, detail="ready", holds_fixtures=True)
        self.alive: dict[str, str] = {}
        self.commands: list[Command] = []
        self.calls: list[str] = []
        self.create_hook: Hook = nothing
        self.created_hook: Hook = nothing
        self.ready_hook: Hook = nothing
        self.exec_hook: Hook = nothing
        self.destroy_hook: Hook = nothing
        self.reset_hook: Hook = nothing
        self.answer: Callable[[Command], ExecResult] = echoing
        self._failures: dict[Call, deque[Exception]] = defaultdict(deque)
        self._deadlines: dict[str, str] = {}

    def fail(self, call: Call, error: Exception, *, times: int = 1) -> None:
        """Have the next ``times`` calls of this kind raise ``error``; several failures come in turn."""
        self._failures[call].extend([error] * times)

    async def passes(self, call: Call, takes_s: float, hook: Hook = nothing) -> None:
        """Wait for the call's duration, then raise a due failure. Part of each call of the fake."""
        if takes_s:
            await asyncio.sleep(takes_s)
        await hook()
        if self._failures[call]:
            raise self._failures[call].popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.calls.append("closed")

    async def check(self) -> Availability:
        return self.availability

    async def create(self, spec: SandboxSpec, marks: Marks) -> FakeSandbox:
        """A sandbox by the spec's name; a second create under the same name returns the same sandbox."""
        self.calls.append(f"create {spec.name}")
        await self.passes("create", self.options.create_s, self.create_hook)
        self.alive[spec.name] = spec.labels[LABEL_RUN]
        self._deadlines[spec.name] = spec.labels.get(LABEL_DEADLINE, "")
        await self.passes("created", 0.0, self.created_hook)
        marks("accepted")
        return FakeSandbox(self, spec.name)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        return [
            labels.found(
                {LABEL_RUN: run, LABEL_DEADLINE: self._deadlines.get(name, "")}, name=name, handle=name, age_s=0.0
            )
            for name, run in self.alive.items()
            if run_id in (None, run)
        ]

    def gone(self, name: str) -> None:
        self.alive.pop(name, None)

    async def reap(self, match: Found) -> None:
        self.calls.append(f"reap {match.name}")
        await self.passes("reap", 0.0)
        self.gone(match.name)


class FakeSandbox:
    """A name; the substrate's ``answer`` answers its commands."""

    def __init__(self, substrate: FakeSubstrate, name: str) -> None:
        self.substrate = substrate
        self.name = name

    async def wait_ready(self, marks: Marks) -> None:
        await self.substrate.passes("ready", self.substrate.options.ready_s, self.substrate.ready_hook)
        marks("running")

    async def exec(self, command: Command) -> ExecResult:
        self.substrate.commands.append(command)
        self._exists()
        try:
            async with asyncio.timeout(command.timeout_s) as limit:
                await self.substrate.passes("exec", self.substrate.options.exec_s, self.substrate.exec_hook)
        except TimeoutError as error:
            if not limit.expired():  # a failure set by the test
                raise
            raise ExecTimeout(f"killed after {command.timeout_s:g} s") from error
        self._exists()
        return self.substrate.answer(command)

    def _exists(self) -> None:
        if self.name not in self.substrate.alive:
            raise SandboxLost(f"{self.name} is gone")

    async def open_session(self) -> FakeSession:
        self.substrate.calls.append("open_session")
        self._exists()
        await self.substrate.passes("open_session", 0.0)
        return FakeSession(self)

    async def reset(self, marks: Marks) -> None:
        self.substrate.calls.append(f"reset {self.name}")
        await self.substrate.passes("reset", 0.0, self.substrate.reset_hook)

    async def destroy(self) -> None:
        self.substrate.calls.append(f"destroy {self.name}")
        await self.substrate.passes("destroy", 0.0, self.substrate.destroy_hook)
        self.substrate.gone(self.name)


class FakeSession:
    """A persistent shell without state."""

    def __init__(self, sandbox: FakeSandbox) -> None:
        self.sandbox = sandbox
        self._closed = False

    async def exec(self, command: Command) -> ExecResult:
        if self._closed:
            raise SandboxLost("the session is closed")
        try:
            return await self.sandbox.exec(command)
        except ExecTimeout:
            self._closed = True
            raise

    async def close(self) -> None:
        self._closed = True
        self.sandbox.substrate.calls.append("close_session")
        await asyncio.sleep(0)
