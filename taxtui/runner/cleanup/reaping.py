"""Removal of every sandbox that is found, and the final sweep of a run; one failure prevents no other removal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from costmodel import Notice
from taxtui.errors import located
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.runner.journal import EventSink
from taxtui.runner.redaction import redact
from taxtui.sandboxes.protocol import Found, Substrate

AT_ONCE: Final = 8
SWEEP_TIMEOUT_S: Final = 300.0
"""Of one substrate."""


class Leftover(NamedTuple):
    """A sandbox that could not be removed, and the reason: a ``SubstrateError``, or an adapter's own bug."""

    sandbox: Found
    error: Exception


async def reap_all(
    substrate: Substrate, sandboxes: Iterable[Found], *, reaped: Callable[[Found], object] = lambda _: None
) -> list[Leftover]:
    """Remove every sandbox, ``AT_ONCE`` at a time; call ``reaped`` for each that is gone and return the others."""
    gate = asyncio.Semaphore(AT_ONCE)
    leftovers: list[Leftover] = []

    async def reap(sandbox: Found) -> None:
        async with gate:
            try:
                await substrate.reap(sandbox)
            except Exception as error:  # also an adapter's bug: it is not known to be gone
                leftovers.append(Leftover(sandbox, error))
            else:
                reaped(sandbox)

    await asyncio.gather(*map(reap, sandboxes))
    return leftovers


def _any(sandbox: str) -> bool:
    return True


async def final_sweep(substrates: Iterable[Substrate], run_id: str, is_ours: Callable[[str], bool] = _any) -> list[str]:
    """Find a run's sandboxes by label on every substrate and remove them; return one line for each that is left.

    ``is_ours`` says by its name whether a sandbox may be removed: another worker may still use it.
    """
    lines = []
    for substrate in substrates:
        try:
            async with asyncio.timeout(SWEEP_TIMEOUT_S):
                failed = await reap_all(substrate, [it for it in await substrate.find(run_id) if is_ours(it.name)])
                why = {sandbox.name: f": {' '.join(redact(error))}" for sandbox, error in failed}
                names = dict.fromkeys([*why, *(it.name for it in await substrate.find(run_id) if is_ours(it.name))])
                lines += [f"{substrate.name}: {name} is left{why.get(name, '')}" for name in names]
        except Exception as error:  # an adapter's bug must not keep the other substrates from being swept
            lines.append(f"{substrate.name}: the last sweep failed: {' '.join(redact(error))}")
    return lines


async def conclude_cleanup(
    substrates: Iterable[Substrate], entry: LedgerEntry, sink: EventSink, failed_removals: int
) -> bool:
    """Sweep what a ledger entry covers and record what is left; True where nothing is.

    ``failed_removals``: clean-ups of single trials that failed before.
    """
    lines = await final_sweep(substrates, entry.run_id, entry.covers)
    for text in lines:
        sink.emit(Notice(sink.now(), "error", f"{text}; taxtui clean --run {entry.run_id} --force"))
    if not lines and failed_removals:
        times = "clean-ups" if failed_removals > 1 else "clean-up"
        text = f"the last look found nothing left; {failed_removals} {times} had failed before"
        sink.emit(Notice(sink.now(), "info", text))
    return not lines


def record_crash(crash: Exception | None, sink: EventSink) -> None:
    """Record the error that ended a run or a worker, where there is one."""
    if crash is not None:
        sink.emit(Notice(sink.now(), "error", f"crashed: {located(crash)} {redact(crash)[1]}".rstrip()))


def watchdog_replaced(sink: EventSink) -> Callable[[], None]:
    """Return a function that records the replacement of a dead watchdog."""
    return lambda: sink.emit(Notice(sink.now(), "warning", "the watchdog has died; another has taken its place"))
