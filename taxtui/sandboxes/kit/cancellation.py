"""Clean up although the caller was cancelled, timed out or failed, and keep both errors.

Every adapter has the same three cases. A clean-up must not be interrupted (:func:`finish_despite_cancel`). An error
must reach the caller after its clean-up (:func:`with_cleanup`). An overdue command must be killed before the timeout is
reported (:func:`kill_then_timeout`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError

_T = TypeVar("_T")
_E = TypeVar("_E", bound=BaseException)

HOLD_CANCEL_S: Final = 60.0
"""Longest delay of a cancellation by a clean-up. Most clean-ups have shorter timeouts."""


async def finish_despite_cancel(work: Coroutine[Any, Any, _T], within_s: float = HOLD_CANCEL_S) -> _T:
    """Run ``work`` to the end even if the caller is cancelled meanwhile; raise the cancellation afterwards.

    After ``within_s`` the work is cancelled and not awaited: no run waits without a limit.

    Raises:
        ExecFailed: the work took longer, and the caller was not cancelled.
    """
    task = asyncio.ensure_future(work)
    give_up = time.monotonic() + within_s
    cancelled: asyncio.CancelledError | None = None
    while not task.done() and (left_s := give_up - time.monotonic()) > 0:
        try:
            await asyncio.wait({task}, timeout=left_s)
        except asyncio.CancelledError as error:
            cancelled = error
    too_late = not task.done()
    if too_late:
        task.cancel()
    task.add_done_callback(retrieve_error)
    if cancelled is not None:
        raise cancelled
    if too_late:
        raise ExecFailed(f"a clean-up was given up: it took longer than {within_s:g} s")
    return task.result()


async def with_cleanup(cleanup: Coroutine[Any, Any, object], error: _E, within_s: float = HOLD_CANCEL_S) -> _E:
    """Run ``cleanup`` despite cancellation, then return ``error``; a failed clean-up is added to the message."""
    try:
        await finish_despite_cancel(cleanup, within_s)
    except SubstrateError as failure:
        if not isinstance(error, SubstrateError):
            error.add_note(str(failure))
        elif str(failure) not in str(error):
            error.problem = f"{error.problem}; {failure}"
    return error


async def undo_if_cancelled(
    work: Coroutine[Any, Any, _T], undo: Callable[[_T], Awaitable[object]], within_s: float = HOLD_CANCEL_S
) -> _T:
    """Run ``work``; after a cancellation of the caller, wait for the end and undo the result.

    After ``within_s`` the work is cancelled.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        await with_cleanup(_undo(task, undo), cancelled, within_s)
        raise


async def _undo(task: asyncio.Future[_T], undo: Callable[[_T], Awaitable[object]]) -> None:
    with contextlib.suppress(Exception):  # the caller's cancellation is the error to raise
        await undo(await task)


async def kill_then_timeout(kill: Coroutine[Any, Any, object], timeout_s: float, suffix: str = "") -> SubstrateError:
    """Run ``kill`` despite cancellation, then return the error for an overdue command.

    ``ExecTimeout`` after a successful kill, with ``suffix`` at the end of the message. If the kill fails, the command
    may still run: ``SandboxLost`` or ``ExecFailed`` with both reasons.
    """
    try:
        await finish_despite_cancel(kill)
    except SubstrateError as failure:
        kind = SandboxLost if isinstance(failure, SandboxLost) else ExecFailed
        return kind(f"the command had no end after {timeout_s:g} s; {failure}")
    return ExecTimeout(f"the command was killed after {timeout_s:g} s{suffix}")


def retrieve_error(task: asyncio.Future[Any]) -> None:
    """Retrieve a task's error: asyncio logs unretrieved errors."""
    if not task.cancelled():
        task.exception()
