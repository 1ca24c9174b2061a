"""One container or machine that no daemon makes; each kind knows how it is started, used and ended."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.cancellation import with_cleanup
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.machine.host import Host


class ContainedSandbox(ABC):
    """One of them; also one that somebody else has started, to be removed."""

    def __init__(self, host: Host, name: str) -> None:
        """Nothing is started."""
        self.name = name
        self.host = host
        self.folder = host.store.folder / name
        self.env: dict[str, str] = {}
        self._removing = asyncio.Lock()

    @abstractmethod
    async def start(self, spec: SandboxSpec, prologue: str) -> None:
        """Start it behind a limiter's shell ``prologue``; returns when it runs. Raises ``CreateFailed``."""

    @abstractmethod
    async def ended(self) -> bool:
        """Whether nothing can run inside any more."""

    @abstractmethod
    async def remove(self) -> None:
        """End it and all that runs inside, and forget it; one at a time. Idempotent. Raises ``CleanupFailed``."""

    @abstractmethod
    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``."""

    @abstractmethod
    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""

    def held_to(self, limits: Limits) -> Limits:
        """What all of its processes on this machine are held to: what was asked for, unless some are not its own."""
        return limits

    async def begin(self, spec: SandboxSpec, marks: Marks) -> None:
        """Start it, held to its limits; removes what a start that fails has left. Raises ``CreateFailed``."""
        self.env = {**self.host.root.env, **spec.env, SANDBOX_ENV: spec.name}
        self.host.store.add(spec)
        try:
            prologue = self.host.limiter.prepare(spec.name, self.held_to(spec.limits))
            marks("limits set")
            await self.start(spec, prologue)
        except BaseException as error:
            await with_cleanup(self.destroy(), error)
            raise
        marks("started")

    async def wait_ready(self, marks: Marks) -> None:  # noqa: B027 - one that is started takes commands
        """There is nothing to wait for."""

    async def reset(self, marks: Marks) -> None:
        """Not among the capabilities."""
        raise ExecFailed(f"{self.name}: this kind of sandbox cannot be reset")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``."""
        async with self._removing:
            await self.remove()
