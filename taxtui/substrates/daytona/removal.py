"""Remove a sandbox or a snapshot of Daytona, and wait for the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from taxtui.errors import CleanupFailed, Throttled
from taxtui.sandboxes.kit import removal
from taxtui.substrates.daytona.client import REQUEST_S, Clients, ask
from taxtui.substrates.daytona.failure import BROKEN, GONE, DaytonaRefused


async def remove_sandbox(clients: Clients, name: str, sandbox_id: str, gone: asyncio.Event, *, look_s: float) -> None:
    """Delete a sandbox in any state. An event may set ``gone``. Raises ``CleanupFailed``."""

    async def state() -> str:
        answer = await ask(clients.sandboxes.get_sandbox(sandbox_id, _request_timeout=REQUEST_S))
        return answer.state.value if answer.state is not None else ""

    await _remove(
        f"sandbox {name}",
        lambda: ask(clients.sandboxes.delete_sandbox(sandbox_id, _request_timeout=REQUEST_S)),
        state,
        gone,
        look_s,
    )


async def remove_snapshot(clients: Clients, name: str, snapshot_id: str) -> None:
    """Delete a snapshot in any state. Raises ``CleanupFailed``."""

    async def state() -> str:
        return (await ask(clients.snapshots.get_snapshot(snapshot_id, _request_timeout=REQUEST_S))).state.value

    await _remove(
        f"snapshot {name}",
        lambda: ask(clients.snapshots.remove_snapshot(snapshot_id, _request_timeout=REQUEST_S)),
        state,
        asyncio.Event(),
        look_s=0.2,
    )


async def _remove(
    subject: str,
    delete: Callable[[], Awaitable[object]],
    state: Callable[[], Awaitable[str]],
    gone: asyncio.Event,
    look_s: float,
) -> None:
    async def ask_to_delete() -> bool:
        try:
            await delete()
        except DaytonaRefused as error:
            if error.status == 404:
                return False
            raise error.unless_final(CleanupFailed) from error
        return True

    async def ended() -> bool:
        try:
            present = await state()
        except DaytonaRefused as error:
            if error.status == 404:
                return True
            raise error.unless_final(CleanupFailed) from error
        if present in BROKEN:
            raise Throttled(f"the state is {present} instead")
        return present == GONE

    stuck = "the deletion was accepted but has not ended; look at app.daytona.io"
    await removal.remove(subject, ask_to_delete, ended, gone=gone, look_s=look_s, stuck=stuck)
