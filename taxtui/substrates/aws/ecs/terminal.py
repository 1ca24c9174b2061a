"""A session's terminal in a task's container, and the end of both: connection, session and processes.

An agent takes few sessions at a time, and keeps a session without a connection. A slot is free again only after the
end of the session: the session reported the end, or the service accepted a request for the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import AsyncIterator
from typing import Final

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.kill import kill_script, new_mark
from taxtui.sandboxes.kit.retry import Retry, StatePoller
from taxtui.sandboxes.kit.shell.framed_shell import farewell
from taxtui.substrates.aws.ecs.api import EcsApi
from taxtui.substrates.aws.ecs.channel import DataChannel, entry_command, leaders
from taxtui.substrates.aws.ecs.protocol import SessionCut
from taxtui.substrates.aws.ecs.task import TaskState

POLLS: Final = 5
"""Intervals of the poller between two lookups: a session may idle for hours, and AWS throttles by calls."""


@contextlib.asynccontextmanager
async def watched(poller: StatePoller[TaskState], arn: str, channel: DataChannel) -> AsyncIterator[None]:
    """During the block, end the channel with the reason as soon as the task has ended."""
    watching = asyncio.ensure_future(watch(poller, arn, channel))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait({watching})


async def watch(poller: StatePoller[TaskState], arn: str, channel: DataChannel) -> None:
    """Poll until the task has ended, and end the channel; poll earlier after a hint of the service."""
    while True:
        channel.doubtful.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLLS * poller.interval_ns / 1e9):
                await channel.doubtful.wait()
        try:
            state = (await poller.next(arn)).state
        except SubstrateError:
            continue  # a refused lookup is no state of the task
        if state is not None and (failure := state.failure()) is not None:
            channel.fail(failure)
            return


LEAVE_TIMEOUT_S: Final = 0.5
"""Wait for an idle shell to exit. A busy shell does not read the request."""
KILL_S: Final = 15.0
"""Time limit of a session for a kill, and of the wait for a slot; an agent needs one second to begin."""
TERMINATE_S: Final = 5.0
"""Time limit of the request to end a session, throttling included."""
LEAVING_S: Final = 3.0
"""Wait for an agent to leave a terminated session; agents need 2 s."""


class TaskTerminal:
    """A data channel as a ``framed_shell.ByteStream``; ``close`` kills every process of the session."""

    def __init__(self, api: EcsApi, arn: str, slots: asyncio.Semaphore) -> None:
        """``slots``: the caller has acquired one."""
        self._api = api
        self._arn = arn
        self._slots = slots
        self._mark = new_mark()
        self._channel: DataChannel | None = None
        self._watch = contextlib.AsyncExitStack()
        self._typed = False
        self.closed = False  # or being closed
        self._stale = False  # the agent may still occupy the slot
        self.first_output_ns = 0

    async def open(self, directory: str) -> None:
        """Have the framed shell started in ``directory``. Raises ``ExecFailed``, ``SandboxLost``."""
        entry, typed = entry_command(directory, self._mark)
        await finish_despite_cancel(self._connect(entry))  # from the request on, a session occupies a slot
        assert self._channel is not None
        await self._watch.enter_async_context(watched(self._api.poller, self._arn, self._channel))
        self._typed = True
        await self._channel.write(typed)

    async def _connect(self, entry: str) -> None:
        self._channel = await self._api.open_channel(self._arn, entry)

    async def read(self) -> tuple[int, bytes]:
        assert self._channel is not None
        item = await self._channel.read()
        self.first_output_ns = self.first_output_ns or time.monotonic_ns()
        return item

    async def write(self, data: bytes) -> None:
        assert self._channel is not None
        await self._channel.write(data)

    async def leave(self) -> None:
        """Close the terminal of an exited shell; background processes may continue."""
        await self._end("")

    async def close(self) -> None:
        """As ``ByteStream.close``. Raises ``ExecFailed`` where processes may be left."""
        await self._end(f"{kill_script(self._mark)}; exit", kill=True)

    async def _end(self, last: str, *, kill: bool = False) -> None:
        """End the session; a second session kills the processes of a busy shell or a lost connection."""
        if self.closed:
            return
        self.closed = True
        try:
            shell_left = await self._take_leave(last)
            await self._watch.aclose()
            if self._channel is not None:
                self._stale = not await hang_up(self._api, self._channel)
            if kill and not shell_left:
                async with self._slot():
                    await _kill(self._api, self._arn, self._mark)
        finally:
            self.drop()  # after a cancelled farewell the connection is still open
            self._slots.release()

    def drop(self) -> None:
        """Drop the connection at once, in any state of the session."""
        if self._channel is not None:
            self._channel.drop()

    async def _take_leave(self, last: str) -> bool:
        """Whether the shell exited; a busy shell does not."""
        if self._channel is None or not self._typed:
            return True
        try:
            if last:
                await self._channel.write(farewell(last))
            return await self._channel.ended(LEAVE_TIMEOUT_S)
        except SubstrateError as error:  # ended earlier, by the shell's exit or a cut
            return not isinstance(error, SessionCut)

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """The session's slot, or a second slot if the lost session may still occupy the first."""
        if not self._stale:
            yield
            return
        try:
            async with asyncio.timeout(KILL_S):
                await self._slots.acquire()
        except TimeoutError as error:
            raise ExecFailed("a session's processes may still run in the task: the agent is busy") from error
        try:
            yield
        finally:
            self._slots.release()


async def hang_up(api: EcsApi, channel: DataChannel) -> bool:
    """Close a channel; return whether the session has ended or the service accepted a request for the end."""
    if await channel.close():
        return True
    try:
        async with asyncio.timeout(TERMINATE_S):
            await Retry()(lambda: api.end_session(channel.session))
    except (SubstrateError, TimeoutError):  # the right to do so is optional
        return False
    await asyncio.sleep(LEAVING_S)
    return True


async def _kill(api: EcsApi, arn: str, mark: str) -> None:
    """Kill the processes with a mark, through another session. A lost container needs no kill.

    Raises ``ExecFailed`` if the kill failed.
    """
    try:
        script = f"{kill_script(mark)}; {kill_script(leaders(mark))}"
        channel = await api.open_channel(arn, f"/bin/sh -c {shlex.quote(script)}")
        try:
            async with watched(api.poller, arn, channel):
                ended = await channel.ended(KILL_S)
            fate = channel.fate
            await hang_up(api, channel)
        finally:
            channel.drop()
    except SandboxLost:
        return
    except SubstrateError as error:
        raise ExecFailed(f"a session's processes may still run in the task: {error}") from error
    if not ended or isinstance(fate, SessionCut):
        raise ExecFailed(f"a session's processes may still run in the task: {fate or 'no answer'}")
