"""One ECS task as a sandbox: from accepted to running to connected, its commands, its end."""

from __future__ import annotations

import asyncio
import shlex
import time
from typing import Final

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.framed_shell import OPEN_TIMEOUT_S, FramedShell, after, unbroken
from taxtui.sandboxes.kit.kill import kill_script, new_mark
from taxtui.sandboxes.kit.removal import settled
from taxtui.sandboxes.kit.session import ExplainedSession
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.aws.ecs.api import EcsApi
from taxtui.substrates.aws.ecs.channel import DataChannel, entry_command, framed
from taxtui.substrates.aws.ecs.exec import SessionCut
from taxtui.substrates.aws.failure import AgentNeverConnected

LEAVE_TIMEOUT_S: Final = 0.5
"""For an idle shell to do as it is told. A busy one does not hear us."""


class EcsSandbox:
    """One task."""

    def __init__(self, api: EcsApi, name: str, arn: str) -> None:
        """Of a task that ECS has accepted."""
        self.name = name
        self._api = api
        self._arn = arn
        self._sessions = asyncio.Semaphore(api.options.sessions)
        self._marks: Marks | None = None
        self._launched_s = time.monotonic()

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: running, and then its session agent too, which are two different instants."""
        marks.cold()  # a session is a new connection to the service
        poller, agent_timeout_s = self._api.poller, self._api.options.agent_timeout_s
        seen = {name for name, _, _ in marks.seen}
        running_ns = 0
        while True:
            state, late_ns = await poller.next(self._arn)
            if state is None:
                continue  # RunTask has answered, DescribeTasks does not know of it yet
            if state.stopping or state.agent == "STOPPED":
                raise state.failure()
            for name in (state.status.lower(), "agent running" if state.agent == "RUNNING" else ""):
                if name and name not in seen:
                    seen.add(name)
                    marks(name, resolution_ns=poller.interval_ns + late_ns)
            if state.status == "RUNNING":
                running_ns = running_ns or time.monotonic_ns()
                if state.agent == "RUNNING":
                    self._marks = marks
                    marks.queued(late_ns)  # of this look alone: while those before it waited, the task went on booting
                    return
                if time.monotonic_ns() - running_ns > agent_timeout_s * 1e9:
                    raise AgentNeverConnected(
                        f"the task runs, but its session agent did not within {agent_timeout_s:g} s",
                        fix="does task_role allow ssmmessages, and is there a route to it (public address, NAT or "
                        "endpoint)?",
                    )

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a session for this command alone, from its request to its end."""
        session, terminal = await self._open()
        result = await session.exec(command)
        await unbroken(terminal.leave())
        return result

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        session, _ = await self._open()
        return session

    async def _open(self) -> tuple[ExplainedSession, _Terminal]:
        await self._sessions.acquire()
        terminal = _Terminal(self, self._sessions)
        try:
            await terminal.open(f"${{TMPDIR:-/tmp}}/{self.name}")
            shell = await FramedShell.open(terminal, merged=True)
        except BaseException as error:
            await after(terminal.close(), error)
            if isinstance(error, SandboxLost | ExecFailed):
                raise await self.explained(error) from error
            raise
        if self._marks is not None:
            self._marks("session open")
            self._marks = None
        return ExplainedSession(shell, self.explained), terminal

    async def channel(self, command: str) -> DataChannel:
        """A new session of the task's. Raises ``ExecFailed`` while its agent is not connected."""
        return await self._api.open_channel(self._arn, command)

    async def kill(self, mark: str) -> None:
        """Kill what has this mark, through another session; where the container is lost there is nothing to do.

        Raises ``ExecFailed`` where that failed.
        """
        try:
            async with self._sessions:
                channel = await self.channel(f"/bin/sh -c {shlex.quote(kill_script(mark))}")
                await channel.ended(OPEN_TIMEOUT_S)
                await channel.close()
        except SandboxLost:
            return
        except SubstrateError as error:
            raise ExecFailed(f"a session's processes may still run in the task: {error}") from error

    async def explained(self, error: SubstrateError) -> SubstrateError:
        """Why a session failed: what became of its task, if that is the reason."""
        seen = await self._api.poller.soon(self._arn)
        if seen is None:
            return error
        if (state := seen.state) is None:
            return SandboxLost("the task no longer exists") if settled(self._launched_s) else error
        return state.failure() if state.stopping or state.status == "STOPPED" else error

    async def reset(self, marks: Marks) -> None:
        """Not among the capabilities."""
        raise ExecFailed("ecs cannot reset a sandbox")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: returns when the task is STOPPED."""
        await self._api.remove(self._arn, self._launched_s)


class _Terminal:
    """A ``shell.ByteStream``: a data channel whose end leaves no process behind that was started through it."""

    def __init__(self, sandbox: EcsSandbox, slot: asyncio.Semaphore) -> None:
        self._sandbox = sandbox
        self._slot = slot
        self._mark = new_mark()
        self._channel: DataChannel | None = None
        self._typed = False
        self._closed = False

    async def open(self, directory: str) -> None:
        entry, typed = entry_command(directory, self._mark)
        await unbroken(self._connect(entry))  # the agent counts a session from our request on: it must be ended
        assert self._channel is not None
        self._typed = True
        await self._channel.write(typed)

    async def _connect(self, entry: str) -> None:
        self._channel = await self._sandbox.channel(entry)

    async def read(self) -> tuple[int, bytes]:
        assert self._channel is not None
        return await self._channel.read()

    async def write(self, data: bytes) -> None:
        assert self._channel is not None
        await self._channel.write(data)

    async def leave(self) -> None:
        """Let the idle shell exit; what it left running in the background may go on."""
        await self._end("exit")

    async def close(self) -> None:
        if not await self._end(f"{kill_script(self._mark)}; exit"):
            await self._sandbox.kill(self._mark)

    async def _end(self, farewell: str) -> bool:
        """Whether the shell took its leave, or had done so before; a busy one is terminated."""
        if self._closed:
            return True
        self._closed = True
        left = True
        try:
            if self._channel is not None and self._typed:
                await self._channel.write(framed(farewell))
                left = await self._channel.ended(LEAVE_TIMEOUT_S)
        except SubstrateError as error:  # it had ended: by its shell's exit, or because it was cut
            left = not isinstance(error, SessionCut)
        finally:
            if self._channel is not None:
                await self._channel.close()
            self._slot.release()
        return left
