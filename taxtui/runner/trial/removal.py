"""Removes the sandbox of a trial, and copies of it."""

from __future__ import annotations

import asyncio

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.removal import find_together
from taxtui.sandboxes.protocol import Sandbox, Substrate


async def remove_copies(substrate: Substrate, spec: SandboxSpec) -> None:
    """Remove the forks, snapshots and images of a trial: matches with the trial's name and a suffix."""
    for match in await find_together(substrate, spec.labels[LABEL_RUN]):
        if match.name.startswith(f"{spec.name}."):
            await substrate.reap(match)


async def remove(
    substrate: Substrate,
    spec: SandboxSpec,
    sandbox: Sandbox | None,
    creating: asyncio.Future[Sandbox] | None,
    answer_within_s: float,
) -> None:
    """Destroy a sandbox by the handle, or else find the sandbox by the labels.

    Args:
        creating: a create under way, which may return the handle.
        answer_within_s: time for the create to return.
    """
    if sandbox is None and creating is not None:
        answered, _ = await asyncio.wait({creating}, timeout=answer_within_s)
        if not answered:
            creating.cancel()
            await asyncio.wait({creating})
        if not creating.cancelled() and creating.exception() is None:
            sandbox = creating.result()
    if sandbox is not None:
        await sandbox.destroy()
        return
    for match in await find_together(substrate, spec.labels[LABEL_RUN]):
        if match.name == spec.name:
            await substrate.reap(match)
