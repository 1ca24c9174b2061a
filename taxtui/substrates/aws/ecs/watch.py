"""Looking after the task of an open session, because nothing on the session's connection tells of its end.

The service between does not hang up when a container or its agent dies: it stays silent, or asks for one pause after
the other. Without a look a dead container is a command that takes until its timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from taxtui.errors import SubstrateError
from taxtui.sandboxes.kit.state_poller import StatePoller
from taxtui.substrates.aws.ecs.channel import DataChannel
from taxtui.substrates.aws.ecs.task import TaskState

POLLS: Final = 5
"""Between two looks, in intervals of the poller: a session may idle for hours, and calls are what AWS throttles by."""


@contextlib.asynccontextmanager
async def watched(poller: StatePoller[TaskState], arn: str, channel: DataChannel) -> AsyncIterator[None]:
    """End the channel with the reason as soon as its task is seen to have ended, for as long as the block lasts."""
    watching = asyncio.ensure_future(watch(poller, arn, channel))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait({watching})


async def watch(poller: StatePoller[TaskState], arn: str, channel: DataChannel) -> None:
    """Until the task has ended, and the channel with it; sooner where the service makes it doubtful."""
    while True:
        channel.doubtful.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLLS * poller.interval_ns / 1e9):
                await channel.doubtful.wait()
        try:
            state = (await poller.next(arn)).state
        except SubstrateError:
            continue  # a look that is refused says nothing of the task
        if state is not None and (failure := state.failure()) is not None:
            channel.fail(failure)
            return
