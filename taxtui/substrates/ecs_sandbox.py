"""One ECS task as a sandbox: from accepted to running to connected, its commands, its end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.shell import FramedShell, unbroken
from taxtui.spec import Command
from taxtui.substrate import ExecResult, Marks, Session
from taxtui.substrates.aws import AgentNeverConnected
from taxtui.substrates.ecs_channel import DataChannel, entry_command

if TYPE_CHECKING:
    from taxtui.substrates.ecs import EcsSubstrate

SESSIONS: Final = 2
"""At the same time in one container; what the ECS agent allows."""


class EcsSandbox:
    """One task."""

    def __init__(self, substrate: EcsSubstrate, name: str, arn: str) -> None:
        """Of a task that ECS has accepted."""
        self.name = name
        self._substrate = substrate
        self._arn = arn
        self._entry, self._typed = entry_command(f"${{TMPDIR:-/tmp}}/{name}")
        self._sessions = asyncio.Semaphore(SESSIONS)
        self._marks: Marks | None = None

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: running, and then its session agent too, which are two different instants."""
        marks.cold()  # a session is a new connection to the service
        poller, options = self._substrate.poller, self._substrate.options
        seen = {name for name, _, _ in marks.seen}
        running_ns = 0
        while True:
            state = await poller.next(self._arn)
            if state is None:
                continue  # RunTask has answered, DescribeTasks does not know of it yet
            if state.stopping or state.agent == "STOPPED":
                raise state.failure()
            for name in (state.status.lower(), "agent running" if state.agent == "RUNNING" else ""):
                if name and name not in seen:
                    seen.add(name)
                    marks(name, resolution_ns=poller.interval_ns)
            if state.status == "RUNNING":
                running_ns = running_ns or time.monotonic_ns()
                if state.agent == "RUNNING":
                    self._marks = marks
                    return
                if time.monotonic_ns() - running_ns > options.agent_timeout_s * 1e9:
                    raise AgentNeverConnected(
                        f"the task runs, but its session agent did not within {options.agent_timeout_s:g} s; does "
                        "task_role allow ssmmessages, and is there a route to it (public address, NAT or endpoint)?"
                    )

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a session for this command alone, from its request to its end."""
        async with self._sessions:
            shell, channel = await self._open()
            try:
                result = await shell.exec(command)
            except SandboxLost as error:
                raise await self.explained(error) from error
            await unbroken(channel.leave())
            return result

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        shell, _ = await self._open()
        return _EcsSession(self, shell)

    async def _open(self) -> tuple[FramedShell, DataChannel]:
        try:
            channel = await self._substrate.open_channel(self._arn, self._entry)
            try:
                await channel.write(self._typed)
            except BaseException:
                await channel.close()
                raise
            shell = await FramedShell.open(channel, merged=True)
        except (SandboxLost, ExecFailed) as error:
            raise await self.explained(error) from error
        if self._marks is not None:
            self._marks("session open")
            self._marks = None
        return shell, channel

    async def explained(self, error: SubstrateError) -> SubstrateError:
        """Why a session failed: what became of its task, if that is the reason."""
        try:
            state = await self._substrate.poller.next(self._arn)
        except SubstrateError:
            return error
        if state is None:
            return SandboxLost("the task no longer exists")
        return state.failure() if state.stopping or state.status == "STOPPED" else error

    async def reset(self, marks: Marks) -> None:
        """Not among the capabilities."""
        raise ExecFailed("ecs cannot reset a sandbox")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: returns when the task is STOPPED."""
        await self._substrate.remove(self._arn)


class _EcsSession:
    """A framed shell that says what became of the task when its connection breaks."""

    def __init__(self, sandbox: EcsSandbox, shell: FramedShell) -> None:
        self._sandbox = sandbox
        self._shell = shell

    async def exec(self, command: Command) -> ExecResult:
        try:
            return await self._shell.exec(command)
        except SandboxLost as error:
            raise await self._sandbox.explained(error) from error

    async def close(self) -> None:
        await self._shell.close()
