"""One ECS task as a sandbox: wait until ready, run commands in sessions, stop.

An agent takes few sessions at a time, and keeps a session without a connection. A slot is free again only after the
end of the session: the session reported the end, or the service accepted a request for the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from functools import partial
from typing import Final
from weakref import WeakSet

import msgspec

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, with_cleanup
from taxtui.sandboxes.kit.kill import kill_script, new_mark
from taxtui.sandboxes.kit.retry import Retry
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell, farewell
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.aws.connection import AwsSubstrate
from taxtui.substrates.aws.ecs.channel import DataChannel, entry_command, leaders
from taxtui.substrates.aws.ecs.protocol import SessionCut
from taxtui.substrates.aws.ecs.task import AGENT, CONTAINER
from taxtui.substrates.aws.failure import AgentNeverConnected

POLLS: Final = 5
"""Intervals of the poller between two lookups: a session may idle for hours, and AWS throttles by calls."""
LEAVE_TIMEOUT_S: Final = 0.5
"""Wait for an idle shell to exit. A busy shell does not read the request."""
KILL_S: Final = 15.0
"""Time limit of a session for a kill; an agent needs one second to begin."""
TERMINATE_S: Final = 5.0
"""Time limit of the request to end a session, throttling included."""
LEAVING_S: Final = 3.0
"""Wait for an agent to leave a terminated session; agents need 2 s."""


class TaskTerminal:
    """A session with a data channel."""

    channel: DataChannel

    def __init__(self, substrate: AwsSubstrate, arn: str, slots: asyncio.Semaphore) -> None:
        """``slots``: the caller has acquired one."""
        self._substrate = substrate
        self._arn = arn
        self._slots = slots
        self._mark = new_mark()
        self._watching: asyncio.Task[None] | None = None  # with a channel
        self._typed = False

    async def open(self, directory: str) -> None:
        """Have the framed shell started in ``directory``. Raises ``ExecFailed``, ``SandboxLost``."""
        entry, typed = entry_command(directory, self._mark)
        await finish_despite_cancel(self._connect(entry))  # from the request on, a session occupies a slot
        self._typed = True
        await self.channel.write(typed)

    async def _connect(self, entry: str) -> None:
        self.channel = await self._channel(entry)
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        """End the channel as soon as the task has ended: the service reports nothing."""
        failure = None
        while failure is None:
            await asyncio.sleep(POLLS * self._substrate.poller.interval_ns / 1e9)
            with contextlib.suppress(SubstrateError):  # a refused lookup is no state of the task
                state = (await self._substrate.poller.next(self._arn)).state
                failure = state and state.failure
        self.channel.drop(failure)

    async def end(self, *, kill: bool = True) -> None:
        """End the session, by default with all processes: a second session kills those of a busy or lost shell.

        Raises ``ExecFailed`` where processes may be left.
        """
        try:
            if self._watching is not None:
                shell_left = await self._take_leave(f"{kill_script(self._mark)}; exit" if kill else "")
                await self._hang_up(self.channel)
                if kill and not shell_left:
                    await self._kill()
        finally:
            self.drop()  # after a cancelled farewell the connection is still open
            self._slots.release()

    def drop(self) -> None:
        """Drop the connection at once, in any state of the session."""
        if self._watching is not None:
            self._watching.cancel()
            self.channel.drop()

    async def _take_leave(self, last: str) -> bool:
        """Whether the shell exited; a busy shell does not."""
        if not self._typed:
            return True
        try:
            if last:
                await self.channel.write(farewell(last))
            return await self.channel.ended(LEAVE_TIMEOUT_S)
        except SubstrateError as error:  # ended earlier, by the shell's exit or a cut
            return not isinstance(error, SessionCut)

    async def _kill(self) -> None:
        """Kill the session's processes through another session. Raises ``ExecFailed`` if the kill failed."""
        try:
            script = f"{kill_script(self._mark)}; {kill_script(leaders(self._mark))}"
            channel = await self._channel(f"/bin/sh -c {shlex.quote(script)}")
            try:
                ended = await channel.ended(KILL_S)
                end = channel.end
                await self._hang_up(channel)
            finally:
                channel.drop()
        except SubstrateError as error:
            raise ExecFailed(f"a session's processes may still run in the task: {error}") from error
        if not ended or isinstance(end, SessionCut):
            raise ExecFailed(f"a session's processes may still run in the task: {end or 'no answer'}")

    async def _channel(self, command: str) -> DataChannel:
        """A session in the task's container. Raises ``ExecFailed`` while the container's agent is not connected."""
        request = partial(self._substrate.call, "opening a session", "execute_command", ExecFailed, interactive=True)
        cluster = self._substrate.options.cluster
        answer = await request(cluster=cluster, task=self._arn, container=CONTAINER, command=command)
        session = answer["session"]
        return await DataChannel.open(session["streamUrl"], session["tokenValue"], session["sessionId"])

    async def _hang_up(self, channel: DataChannel) -> None:
        """Close a channel; the service ends a session that does not report its end."""
        if await channel.close():
            return
        request = partial(self._substrate.call, "ending a session", "terminate_session", ExecFailed, service="ssm")
        with contextlib.suppress(SubstrateError, TimeoutError):  # the right to do so is optional
            async with asyncio.timeout(TERMINATE_S):
                await Retry()(lambda: request(SessionId=channel.session))
            await asyncio.sleep(LEAVING_S)


class EcsSandbox:
    """One task."""

    def __init__(self, substrate: AwsSubstrate, name: str, arn: str) -> None:
        self.name = name
        self._substrate = substrate
        self._arn = arn
        self._sessions = asyncio.Semaphore(substrate.options.sessions)
        self._terminals: WeakSet[TaskTerminal] = WeakSet()  # in use, or remains of a cancelled command
        self._launched_s = time.monotonic()

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: until the session agent of the running task runs."""
        marks.cold()  # a session is a new connection to the service
        state, late_ns = await self._substrate.reached(self._arn, marks, "running")
        agent_timeout_s = self._substrate.options.agent_timeout_s
        try:
            async with asyncio.timeout(agent_timeout_s):
                if AGENT not in state.milestones:
                    _, late_ns = await self._substrate.reached(self._arn, marks, AGENT)
        except TimeoutError as error:
            raise AgentNeverConnected(
                f"the task runs, but its session agent does not after {agent_timeout_s:g} s",
                fix="check that task_role allows ssmmessages, and the route there (public address, NAT or endpoint)",
            ) from error
        marks.queued(late_ns)  # only of the last lookup: during earlier waits the task was booting

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a new session, from request to end; the time to open is a part of the timeout."""
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(command.timeout_s):
                terminal = await self._open()
        except TimeoutError as error:
            raise await self.explained(ExecTimeout(f"no session within {command.timeout_s:g} s")) from error
        shell = FramedShell(terminal.channel, merged=True, end=terminal.end, explain=self.explained, silent=True)
        left_s = max(0.1, round(command.timeout_s - (time.monotonic() - began_s), 1))
        result = await shell.only(msgspec.structs.replace(command, timeout_s=left_s))
        await finish_despite_cancel(terminal.end(kill=False))
        return result

    async def open_session(self) -> Session:
        terminal = await self._open()
        return await FramedShell(
            terminal.channel, merged=True, end=terminal.end, explain=self.explained, silent=True
        ).open()

    async def _open(self) -> TaskTerminal:
        await self._sessions.acquire()
        terminal = TaskTerminal(self._substrate, self._arn, self._sessions)
        self._terminals.add(terminal)
        try:
            await terminal.open(f"${{TMPDIR:-/tmp}}/{self.name}")
        except BaseException as error:
            await with_cleanup(terminal.end(), error)
            if isinstance(error, SandboxLost | ExecFailed):
                raise await self.explained(error) from error
            raise
        return terminal

    async def explained(self, error: SubstrateError) -> SubstrateError:
        """``error``, or the end of the task as the cause."""
        return await self._substrate.explained(self._arn, self._launched_s, error)

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: returns when the task is STOPPED."""
        for terminal in self._terminals:
            terminal.drop()  # an open session's connection would outlive the task
        await self._substrate.remove(self._arn, self._launched_s)
