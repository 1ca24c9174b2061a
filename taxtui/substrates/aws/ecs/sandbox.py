"""One ECS task as a sandbox: wait until ready, run commands, stop."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import msgspec

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, with_cleanup
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.aws.ecs.api import EcsApi
from taxtui.substrates.aws.ecs.terminal import TaskTerminal
from taxtui.substrates.aws.failure import AgentNeverConnected

_LEAST_S: Final = 0.1
"""The least timeout of a command in an open session."""


class EcsSandbox:
    """One task."""

    def __init__(self, api: EcsApi, name: str, arn: str) -> None:
        self.name = name
        self._api = api
        self._arn = arn
        self._sessions = asyncio.Semaphore(api.options.sessions)
        self._terminals: set[TaskTerminal] = set()  # in use, or remains of a cancelled command
        self._marks: Marks | None = None
        self._launched_s = time.monotonic()

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: until the session agent of the running task runs."""
        marks.cold()  # a session is a new connection to the service
        agent_timeout_s = self._api.options.agent_timeout_s
        seen = {name for name, _, _ in marks.seen}
        running_ns = 0
        while True:
            state, late_ns = await self._api.next_state(self._arn, marks)
            for name in (state.status.lower(), "agent running" if state.agent == "RUNNING" else ""):
                if name and name not in seen:
                    seen.add(name)
                    marks(name, resolution_ns=self._api.poller.interval_ns + late_ns)
            if state.status == "RUNNING":
                running_ns = running_ns or time.monotonic_ns()
                if state.agent == "RUNNING":
                    self._marks = marks
                    marks.queued(late_ns)  # only of the last lookup: during earlier waits the task was booting
                    return
                if time.monotonic_ns() - running_ns > agent_timeout_s * 1e9:
                    raise AgentNeverConnected(
                        f"the task runs, but its session agent does not after {agent_timeout_s:g} s",
                        fix="check that task_role allows ssmmessages, and the route there (public address, NAT or "
                        "endpoint)",
                    )

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a new session, from request to end."""
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(command.timeout_s):
                terminal = await self._open()
        except TimeoutError as error:
            if isinstance(error, SubstrateError):
                raise
            raise await self.explained(ExecTimeout(f"no session within {command.timeout_s:g} s")) from error
        left_s = max(_LEAST_S, round(command.timeout_s - (time.monotonic() - began_s), 1))
        session = FramedShell(terminal, merged=True, explain=self.explained, silent=True)
        result = await session.only(msgspec.structs.replace(command, timeout_s=left_s))
        await finish_despite_cancel(terminal.leave())
        self._opened(terminal)
        return result

    async def open_session(self) -> Session:
        terminal = await self._open()
        shell = await FramedShell.open(terminal, merged=True, explain=self.explained, silent=True)
        self._opened(terminal)
        return shell

    async def _open(self) -> TaskTerminal:
        await self._sessions.acquire()
        terminal = TaskTerminal(self._api, self._arn, self._sessions)
        self._terminals = {open_terminal for open_terminal in self._terminals if not open_terminal.closed} | {terminal}
        try:
            await terminal.open(f"${{TMPDIR:-/tmp}}/{self.name}")
        except BaseException as error:
            await with_cleanup(terminal.close(), error)
            if isinstance(error, SandboxLost | ExecFailed):
                raise await self.explained(error) from error
            raise
        return terminal

    def _opened(self, terminal: TaskTerminal) -> None:
        """Record the first session, a part of the cold start, as a milestone."""
        marks, self._marks = self._marks, None
        if marks is not None:
            marks("session open", at_ns=terminal.first_output_ns)

    async def explained(self, error: SubstrateError) -> SubstrateError:
        """``error``, or the end of the task as the cause."""
        return await self._api.explained(self._arn, self._launched_s, error)

    async def reset(self, marks: Marks) -> None:
        raise ExecFailed("ecs cannot reset a sandbox")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: returns when the task is STOPPED."""
        for terminal in self._terminals:
            terminal.drop()  # an open session's connection would outlive the task
        await self._api.remove(self._arn, self._launched_s)
