"""Remove a sandbox or a snapshot of Daytona, and wait for the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from taxtui.errors import CleanupFailed, Throttled
from taxtui.sandboxes.kit import removal
from taxtui.substrates.daytona.client import REQUEST_S, Clients, ask
from taxtui.substrates.daytona.failure import BROKEN, GONE, DaytonaRefused

_LOOK_S: Final = 0.2


async def remove_sandbox(clients: Clients, name: str, sandbox_id: str) -> None:
    """Delete a sandbox in any state. Raises ``CleanupFailed``."""
    api = clients.sandboxes
    await _remove(f"sandbox {name}", sandbox_id, api.delete_sandbox, api.get_sandbox)


async def remove_snapshot(clients: Clients, name: str, snapshot_id: str) -> None:
    """Delete a snapshot in any state. Raises ``CleanupFailed``."""
    api = clients.snapshots
    await _remove(f"snapshot {name}", snapshot_id, api.remove_snapshot, api.get_snapshot)


async def _remove(
    subject: str, handle: str, delete: Callable[..., Awaitable[object]], get: Callable[..., Awaitable[Any]]
) -> None:
    async def ask_to_delete() -> bool:
        try:
            await ask(delete(handle, _request_timeout=REQUEST_S))
        except DaytonaRefused as error:
            if error.status == 404:
                return False
            raise error.unless_final(CleanupFailed) from error
        return True

    async def ended() -> bool:
        try:
            answer = await ask(get(handle, _request_timeout=REQUEST_S))
        except DaytonaRefused as error:
            if error.status == 404:
                return True
            raise error.unless_final(CleanupFailed) from error
        state = answer.state.value if answer.state is not None else ""
        if state in BROKEN:
            raise Throttled(f"the state is {state} instead")
        return bool(state == GONE)

    stuck = "the deletion was accepted but has not ended; look at app.daytona.io"
    await removal.remove(subject, ask_to_delete, ended, look_s=_LOOK_S, stuck=stuck)
