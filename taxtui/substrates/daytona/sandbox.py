"""One Daytona sandbox: states, commands by the toolbox, life cycle and removal."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from daytona_api_client_async import CreateSandboxSnapshot, SnapshotDto
from daytona_toolbox_api_client_async import ExecuteRequest

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import (
    finish_despite_cancel,
    kill_then_timeout,
    undo_if_cancelled,
    with_cleanup,
)
from taxtui.sandboxes.kit.kill import LEFT, kill_until_done, require_killed
from taxtui.sandboxes.kit.refusal import connecting
from taxtui.sandboxes.kit.shell.framed_shell import ExplainedSession, FramedShell
from taxtui.sandboxes.kit.text_command import TextCommand, read, wrap
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.daytona import DaytonaOptions, failure, snapshots
from taxtui.substrates.daytona.client import REQUEST_S, ask
from taxtui.substrates.daytona.failure import BROKEN, GONE, DaytonaRefused
from taxtui.substrates.daytona.pty import Terminal
from taxtui.substrates.daytona.removal import remove_sandbox, remove_snapshot
from taxtui.substrates.daytona.states import STARTED, StateReport, States

SIGNALLED: Final = 128
KILL_S: Final = 10.0
KILLED_S: Final = 0.3
"""Wait for the end of killed processes before the next kill: the command may be starting."""
SERVER_GRACE_S: Final = 15.0
"""taxtui ends a command at the timeout; the toolbox ends the command this much later."""
AGAIN_S: Final = 0.2
"""Wait before a refused change of the state is requested again, and between two lookups of a new snapshot."""
NO_AUTO_DELETE: Final = -1
"""The auto-delete interval of a sandbox that stays after its stop."""
CHANGING: Final = (400, 409)
"""Refusals of a request during another change of the state."""
LOST_S: Final = 1.0
"""Wait for a state that explains a broken connection."""


class DaytonaSandbox:
    """A sandbox, followed by ``States``."""

    def __init__(
        self,
        name: str,
        sandbox_id: str,
        base_url: str,
        states: States,
        env: Mapping[str, str],
        options: DaytonaOptions,
        marks: Marks,
    ) -> None:
        self.name = name
        self.id = sandbox_id
        self._base_url = base_url
        self._clients = states.clients
        self._states = states
        self._env = env
        self._shell = options.shell
        self._archives = options.suspend == "archive"
        self._marks = marks
        self._process = self._clients.process(base_url)
        self._state = ""
        self._reason = ""
        self._news = asyncio.Event()
        self._gone = asyncio.Event()
        self._leaving = False
        states.follow(sandbox_id, self.changed)

    def changed(self, report: StateReport) -> None:
        """Take over a new state, and record the state as a milestone."""
        state = report.state
        if state == self._state or not state:
            return
        self._state, self._reason = state, report.reason
        if not self._leaving:
            self._marks(state.replace("_", " "), at_ns=report.at_ns, resolution_ns=report.resolution_ns)
        if state == STARTED:
            self._marks.queued(report.late_ns)
        if state == GONE:
            self._gone.set()
        self._news.set()

    def _lost(self) -> str | None:
        return failure.lost(self._state, self._reason, leaving=self._leaving)

    # ------------------------------------------------------------------------------------------------ as a Sandbox

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``; a sandbox in the state ``error`` is a ``CreateFailed``."""
        self._marks = marks
        with self._states.watched(self.id):
            while self._state != STARTED:
                self._news.clear()
                if broken := failure.broken(self._state, self._reason):
                    raise CreateFailed(broken)
                if lost := self._lost():
                    raise SandboxLost(lost)
                await self._news.wait()
        self._states.report_throttling(marks)

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: one request to the toolbox."""
        if lost := self._lost():
            raise SandboxLost(lost)
        wrapped = wrap(command, self._shell, self._env)
        began = time.monotonic_ns()
        # Shielded: the toolbox continues a command without a client.
        sending = asyncio.ensure_future(self._execute(wrapped.script, command.timeout_s + SERVER_GRACE_S))
        try:
            async with asyncio.timeout(command.timeout_s):
                answer, code = await asyncio.shield(sending)
        except TimeoutError:
            raise await kill_then_timeout(self._end(sending, wrapped), command.timeout_s) from None
        except asyncio.CancelledError as cancelled:
            await with_cleanup(self._end(sending, wrapped), cancelled)
            raise
        except DaytonaRefused as error:
            failed = error.as_error(ExecFailed, "exec")
            if not error.status:
                await with_cleanup(self._end(sending, wrapped), failed)
            raise await self._explained(failed) from error
        try:
            result = read(answer, wrapped.nonce)
        except ExecFailed as garbled:
            raise await self._explained(garbled) from None
        if result is not None:
            return result
        if code > SIGNALLED:  # by the command itself, or with the whole sandbox
            ended = time.monotonic_ns()
            if lost := await self.lost_soon():
                raise SandboxLost(lost)
            return ExecResult(code, b"", b"", began, ended)
        raise await self._explained(failure.not_run(self._shell, code))

    async def _execute(self, script: str, timeout_s: float) -> tuple[str, int]:
        """The output and the exit code of one request. Raises ``DaytonaRefused``."""
        token = connecting.set(self._marks)
        try:
            request = ExecuteRequest(command=script, timeout=math.ceil(timeout_s))
            answer = await ask(self._process.execute_command(request=request, _request_timeout=timeout_s + REQUEST_S))
        finally:
            connecting.reset(token)
        return answer.result or "", answer.exit_code or 0

    async def _end(self, sending: asyncio.Future[tuple[str, int]], wrapped: TextCommand) -> None:
        """Kill a command with a running or broken request. Raises ``ExecFailed``."""

        async def kill() -> None:
            output, code = await self._execute(wrapped.kill, KILL_S)
            require_killed(code, output)

        try:
            if sending.done():
                async with asyncio.timeout(KILL_S):
                    await kill()
            else:
                await kill_until_done(kill, sending, within_s=KILL_S, again_s=KILLED_S)
        except (DaytonaRefused, TimeoutError) as error:
            if isinstance(error, DaytonaRefused) and error.status in (400, 404):
                return  # the sandbox is gone
            raise ExecFailed(f"{LEFT}: {error or 'no answer'}") from error
        finally:
            if not sending.done():
                sending.cancel()
            await asyncio.wait({sending})
            if not sending.cancelled():
                sending.exception()  # retrieved: the caller raises another error

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``: a pseudo-terminal behind one websocket."""
        if lost := self._lost():
            raise SandboxLost(lost)
        token = connecting.set(self._marks)
        try:
            # A request that is cancelled half-way could leave an unknown terminal.
            shell = await undo_if_cancelled(self._open_shell(), FramedShell.close)
        except (ExecFailed, SandboxLost) as error:
            raise await self._explained(error) from error.__cause__
        finally:
            connecting.reset(token)
        return ExplainedSession(shell, self._explained)

    async def _open_shell(self) -> FramedShell:
        terminal = Terminal(self._clients, self._process, self._base_url)
        try:
            await terminal.open(self._env)
        except DaytonaRefused as error:
            failure = error.as_error(ExecFailed, "opening a terminal")
            raise await with_cleanup(terminal.close(), failure) from error
        except BaseException as error:
            await with_cleanup(terminal.close(), error)
            raise
        return await FramedShell.open(terminal, merged=True)  # closes the terminal after a failure

    async def suspend(self, marks: Marks) -> None:
        """Stop the sandbox, or archive a stopped sandbox by the option: files stay, processes end.

        The stop would delete an ephemeral sandbox, so the auto-delete interval is changed first.
        """
        sandboxes = self._clients.sandboxes

        async def stop() -> None:
            await ask(sandboxes.set_auto_delete_interval(self.id, NO_AUTO_DELETE, _request_timeout=REQUEST_S))
            await ask(sandboxes.stop_sandbox(self.id, _request_timeout=REQUEST_S))

        async def archive() -> None:
            await ask(sandboxes.archive_sandbox(self.id, _request_timeout=REQUEST_S))

        if self._archives:
            await self._reach("archived", {STARTED: stop, "stopped": archive})
        else:
            await self._reach("stopped", {STARTED: stop})

    async def resume(self, marks: Marks) -> None:
        """Start the sandbox; Daytona first restores an archived one."""

        async def start() -> None:
            await ask(self._clients.sandboxes.start_sandbox(self.id, _request_timeout=REQUEST_S))

        await self._reach(STARTED, {"stopped": start, "archived": start})

    async def usage(self) -> Usage:
        """Unknown: Daytona reports no usage of a stopped sandbox."""
        return Usage()

    async def snapshot(self, name: str, labels: Mapping[str, str], marks: Marks) -> str:
        """Create a snapshot of the sandbox's files. After a cancellation the finished snapshot is deleted."""
        reference = snapshots.full_name(name, labels)
        await undo_if_cancelled(
            self._create_snapshot(reference), lambda snapshot: remove_snapshot(self._clients, name, snapshot.id)
        )
        return reference

    async def _create_snapshot(self, reference: str) -> SnapshotDto:
        """The snapshot, once it is active and the sandbox takes commands again."""
        request = CreateSandboxSnapshot(name=reference)
        sandboxes = self._clients.sandboxes
        try:
            await ask(sandboxes.create_sandbox_snapshot(self.id, request, _request_timeout=REQUEST_S))
        except DaytonaRefused as error:
            raise error.as_error(CreateFailed, "the sandbox can't be copied") from error
        with self._states.watched(self.id):
            while True:
                self._news.clear()
                if lost := self._lost():
                    raise SandboxLost(lost)
                if self._state == STARTED and (snapshot := await snapshots.active(self._states, reference)):
                    return snapshot
                await self._wait_for_news(AGAIN_S)

    async def _reach(self, target: str, changes: Mapping[str, Callable[[], Coroutine[Any, Any, None]]]) -> None:
        """Request the change of each state on the way, and return once the state is ``target``."""
        with self._states.watched(self.id):
            if self._state == target:  # a cancelled call may have requested another state since the last report
                await self._states.look(self.id)
            while self._state != target:
                self._news.clear()
                if self._state in (GONE, "destroying", *BROKEN):
                    raise SandboxLost(self._lost() or f"the sandbox is {self._state}")
                accepted = True
                if change := changes.get(self._state):
                    try:
                        await finish_despite_cancel(change())
                    except DaytonaRefused as error:
                        if error.status not in CHANGING:
                            raise error.as_error(ExecFailed, f"the sandbox cannot become {target}") from error
                        accepted = False
                await self._wait_for_news(None if accepted else AGAIN_S)

    async def _wait_for_news(self, within_s: float | None) -> None:
        """Wait for another state; return without one after ``within_s``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()

    async def reset(self, marks: Marks) -> None:
        raise ExecFailed("daytona cannot reset a sandbox")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: until an event or a look reports the state ``destroyed``."""
        self._leaving = True
        look_s = 1.0 if self._states.by_events else 0.2
        await remove_sandbox(self._clients, self.name, self.id, self._gone, look_s=look_s)
        self._states.unfollow(self.id)

    async def _explained(self, error: SubstrateError) -> SubstrateError:
        """``SandboxLost`` if the sandbox has ended, else ``error``."""
        if not isinstance(error, ExecFailed | SandboxLost):
            return error
        lost = await self.lost_soon()
        return SandboxLost(lost) if lost else error

    async def lost_soon(self) -> str | None:
        """The reason why the sandbox takes no more commands, after a short wait for it; None without one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOST_S):
                while not self._lost():
                    self._news.clear()
                    await self._news.wait()
                return self._lost()
        await self._states.look(self.id)
        return self._lost()
