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
from taxtui.plan.spec import FIXTURES_ENV, SandboxSpec
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, undo_if_cancelled, with_cleanup
from taxtui.sandboxes.kit.kill import LEFT, kill_script, require_killed
from taxtui.sandboxes.kit.refusal import connecting
from taxtui.sandboxes.kit.shell.framed_shell import FramedShell
from taxtui.sandboxes.kit.text_sandbox import TextAnswer, TextCommand, TextSandbox
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import Marks, Session
from taxtui.substrates.daytona import DaytonaOptions, failure
from taxtui.substrates.daytona.client import HANDLE, REQUEST_S, Clients, ask, full_name
from taxtui.substrates.daytona.failure import BROKEN, GONE, DaytonaRefused, SandboxState
from taxtui.substrates.daytona.pty import Terminal

STARTED: Final = "started"
_SERVER_GRACE_S: Final = 15.0
"""taxtui ends a command at the timeout; the toolbox ends the command this much later."""
_KILL_S: Final = 10.0
_AGAIN_S: Final = 0.5
"""Between two lookups of a new snapshot."""
_NO_AUTO_DELETE: Final = -1
"""The auto-delete interval of a sandbox that stays after its stop."""
_CHANGING: Final = (400, 409)
"""Refusals of a request during another change of the state."""
_LOST_S: Final = 1.0
"""Wait for a state that explains a broken connection."""


class DaytonaSandbox(TextSandbox):
    """A sandbox, and its state when last looked up."""

    def __init__(self, clients: Clients, options: DaytonaOptions, spec: SandboxSpec, made: Any, marks: Marks) -> None:
        """``made``: Daytona's answer to the create."""
        # Each command sets the variables: a sandbox with custom variables would miss the warm pool.
        fixtures = {FIXTURES_ENV: options.fixtures} if options.fixtures else {}
        super().__init__(spec.name, options.shell, {**fixtures, **spec.env})
        self.id = made.id
        self._base_url = f"{made.toolbox_proxy_url.rstrip('/')}/{made.id}"
        self._clients = clients
        self._marks = marks
        self._process = clients.process(self._base_url)
        self._state = SandboxState("", "")
        self._looked_ns = time.monotonic_ns()
        self.changed(SandboxState.of(made))

    def changed(self, state: SandboxState, resolution_ns: int = 0) -> bool:
        """Take over a state, and record a new one as a milestone; whether the state is new."""
        if state.name == self._state.name or not state.name:
            return False
        self._state = state
        self._marks(state.name.replace("_", " "), resolution_ns=resolution_ns)
        return True

    async def _look(self) -> None:
        """Wait for the next lookup of the state. Raises ``SubstrateError``: Daytona refuses for good."""
        state, late_ns = await self._clients.states.next(self.id)
        last_ns, self._looked_ns = self._looked_ns, time.monotonic_ns()
        state = state or SandboxState(GONE, "")
        if self.changed(state, self._looked_ns - last_ns) and state.name == STARTED:
            self._marks.queued(late_ns)

    # ------------------------------------------------------------------------------------------------ as a Sandbox

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``; a sandbox in the state ``error`` is a ``CreateFailed``."""
        self._marks = marks
        while self._state.name != STARTED:
            if lost := failure.lost(self._state):
                raise (CreateFailed if self._state.name in BROKEN else SandboxLost)(lost)
            await self._look()
        self._clients.states.report_throttling(marks)

    async def send(self, wrapped: TextCommand, timeout_s: float) -> TextAnswer:
        """One request to the toolbox."""
        try:
            return await self._execute(wrapped.script, timeout_s + _SERVER_GRACE_S)
        except DaytonaRefused as error:
            raise error.as_error(ExecFailed, "exec") from error

    async def _execute(self, script: str, timeout_s: float) -> TextAnswer:
        request = ExecuteRequest(command=script, timeout=math.ceil(timeout_s))
        began_ns = time.monotonic_ns()
        answer = await ask(
            self._process.execute_command, request=request, timeout_s=timeout_s + REQUEST_S, marks=self._marks
        )
        return TextAnswer(answer.result or "", answer.exit_code or 0, began_ns, time.monotonic_ns())

    async def kill(self, mark: str) -> None:
        try:
            killed = await self._execute(kill_script(mark), _KILL_S)
        except DaytonaRefused as error:
            if error.status in (400, 404):
                return  # the sandbox is gone
            raise ExecFailed(f"{LEFT}: {error}") from error
        require_killed(killed.exit_code, killed.text)

    async def lost(self) -> str:
        """As ``TextSandbox.lost``, after a short wait for a state that explains a failure."""
        with contextlib.suppress(TimeoutError, SubstrateError):
            async with asyncio.timeout(_LOST_S):
                while not failure.lost(self._state):
                    await self._look()
        return failure.lost(self._state)

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``: a pseudo-terminal behind one websocket."""
        self.require_existing()
        token = connecting.set(self._marks)
        try:
            # A request that is cancelled half-way could leave an unknown terminal.
            return await undo_if_cancelled(self._open_shell(), FramedShell.close)
        except (ExecFailed, SandboxLost) as error:
            raise await self.explained(error) from error.__cause__
        finally:
            connecting.reset(token)

    async def _open_shell(self) -> FramedShell:
        terminal = Terminal(self._clients, self._process, self._base_url)
        try:
            await terminal.open(self._env)
        except DaytonaRefused as error:
            failed = error.as_error(ExecFailed, "opening a terminal")
            raise await with_cleanup(terminal.close(), failed) from error
        except BaseException as error:
            await with_cleanup(terminal.close(), error)
            raise
        return await FramedShell(terminal, merged=True, explain=self.explained).open()  # closes after a failure

    async def suspend(self, marks: Marks) -> None:
        """Stop the sandbox: files stay, processes end.

        The stop would delete an ephemeral sandbox, so the auto-delete interval is changed first.
        """
        sandboxes = self._clients.sandboxes

        async def stop() -> None:
            await ask(sandboxes.set_auto_delete_interval, self.id, _NO_AUTO_DELETE)
            await ask(sandboxes.stop_sandbox, self.id)

        await self._reach("stopped", STARTED, stop)

    async def resume(self, marks: Marks) -> None:
        """Start the sandbox."""
        await self._reach(STARTED, "stopped", lambda: ask(self._clients.sandboxes.start_sandbox, self.id))

    async def usage(self) -> Usage:
        """Unknown: Daytona reports no usage of a stopped sandbox."""
        return Usage()

    async def snapshot(self, name: str, labels: Mapping[str, str], marks: Marks) -> str:
        """Create a snapshot of the sandbox's files. After a cancellation the finished snapshot is deleted."""
        reference = full_name(name, labels)
        await undo_if_cancelled(
            self._create_snapshot(reference), lambda made: self._clients.remove(name, HANDLE + made.id)
        )
        return reference

    async def _create_snapshot(self, reference: str) -> SnapshotDto:
        """The snapshot, once it is active and the sandbox takes commands again."""
        request = CreateSandboxSnapshot(name=reference)
        try:
            await ask(self._clients.sandboxes.create_sandbox_snapshot, self.id, request)
        except DaytonaRefused as error:
            raise error.as_error(CreateFailed, "the sandbox can't be copied") from error
        self._looked_ns = time.monotonic_ns()
        while True:
            await self._look()
            if lost := failure.lost(self._state):
                raise SandboxLost(lost)
            if self._state.name == STARTED:
                if snapshot := await self._active(reference):
                    return snapshot
                await asyncio.sleep(_AGAIN_S)

    async def _active(self, reference: str) -> SnapshotDto | None:
        """The snapshot if sandboxes can be created from it, else None. Raises ``CreateFailed``."""
        try:
            snapshot = await ask(self._clients.snapshots.get_snapshot, reference)
        except DaytonaRefused as error:
            if error.status in (0, 404, 429):
                return None
            raise error.as_error(CreateFailed, "the snapshot can't be read") from error
        if snapshot.state.value in BROKEN:
            reason = snapshot.error_reason or "no reason given"
            raise CreateFailed(f"the snapshot went to {snapshot.state.value}: {reason}")
        return snapshot if snapshot.state.value == "active" else None

    async def _reach(self, target: str, origin: str, change: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Request the change in the state ``origin`` until Daytona accepts, and return once the state is ``target``."""
        accepted = False
        self._looked_ns = time.monotonic_ns()
        if self._state.name == target:  # a cancelled call may have requested another state since the last lookup
            await self._look()
        while self._state.name != target:
            if self._state.name in (GONE, "destroying", *BROKEN):
                raise SandboxLost(failure.lost(self._state))
            if self._state.name == origin and not accepted:
                try:
                    await finish_despite_cancel(change())
                    accepted = True
                except DaytonaRefused as error:
                    if error.status not in _CHANGING:
                        raise error.as_error(ExecFailed, f"the sandbox cannot become {target}") from error
            await self._look()

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: until a look reports the state ``destroyed``."""
        await self._clients.remove(self.name, self.id)
        self.forget()
