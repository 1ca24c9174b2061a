"""Removal of sandboxes, and the final sweep of a run; a failure prevents no other removal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from costmodel import events
from taxtui.errors import located
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.runner.journal import Journal
from taxtui.runner.redaction import redact
from taxtui.sandboxes.protocol import Found, Substrate

AT_ONCE: Final = 8
SWEEP_TIMEOUT_S: Final = 300.0
"""Of one substrate."""


class Leftover(NamedTuple):
    """A sandbox after a failed removal, and the error: a ``SubstrateError``, or an adapter's bug."""

    sandbox: Found
    error: Exception


async def reap_all(
    substrate: Substrate, sandboxes: Iterable[Found], *, reaped: Callable[[Found], object] = lambda _: None
) -> list[Leftover]:
    """Remove every sandbox, ``AT_ONCE`` at a time; call ``reaped`` after each removal and return the failures."""
    gate = asyncio.Semaphore(AT_ONCE)
    leftovers: list[Leftover] = []

    async def reap(sandbox: Found) -> None:
        async with gate:
            try:
                await substrate.reap(sandbox)
            except Exception as error:  # also an adapter's bug: the sandbox may still exist
                leftovers.append(Leftover(sandbox, error))
            else:
                reaped(sandbox)

    await asyncio.gather(*map(reap, sandboxes))
    return leftovers


async def final_sweep(substrates: Iterable[Substrate], run_id: str, is_ours: Callable[[str], bool]) -> list[str]:
    """Remove a run's sandboxes on every substrate, by label; return a line for each leftover.

    ``is_ours``: whether a sandbox of this name may be removed. Another worker may still use a sandbox.
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


async def conclude_cleanup(substrates: Iterable[Substrate], entry: LedgerEntry, journal: Journal) -> bool:
    """Sweep a ledger entry's sandboxes and record leftovers; True without leftovers."""
    lines = await final_sweep(substrates, entry.run_id, entry.covers)
    for text in lines:
        journal.emit(events.Notice(journal.now(), "error", f"{text}; taxtui clean --run {entry.run_id} --force"))
    return not lines


def record_crash(crash: Exception | None, journal: Journal) -> None:
    """Record the error of a crash, if any."""
    if crash is not None:
        journal.emit(events.Notice(journal.now(), "error", f"crashed: {located(crash)} {redact(crash)[1]}".rstrip()))
