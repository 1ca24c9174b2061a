"""Calls of the life cycle in a trial: a look at a sandbox's usage during a pause, and copies after the last action."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from costmodel import events
from taxtui.errors import ExecFailed, SubstrateError
from taxtui.plan.spec import Command, Operation, SandboxSpec
from taxtui.sandboxes.lifecycle import SNAPSHOT, Builds, Snapshots, Suspends, Usage
from taxtui.sandboxes.protocol import Marks, Sandbox, Substrate


async def idle(until_ns: float, sandbox: Suspends, look: Callable[[Usage], None]) -> None:
    """Sleep until an instant; meanwhile pass the sandbox's usage to ``look``, if the host reports it by then."""

    async def looking() -> None:
        with contextlib.suppress(SubstrateError):
            usage = await sandbox.usage()
            if usage != Usage():
                look(usage)

    task = asyncio.ensure_future(looking())
    try:
        await asyncio.sleep((until_ns - time.monotonic_ns()) / 1e9)
    finally:
        task.cancel()
        await asyncio.wait({task})


async def measure_copies(
    operations: tuple[Operation, ...],
    substrate: Substrate,
    sandbox: Sandbox,
    spec: SandboxSpec,
    marks: Marks,
    record: Callable[..., Awaitable[object]],
) -> None:
    """Take a snapshot, fork the snapshot, and build an image, by ``operations``.

    ``record(phase, call, resumes=…)`` runs a call as a phase, and again after a throttle; ``resumes``: the next run of
    the call continues where the throttled run stopped. The copies have the trial's name with a suffix, and the trial's
    labels.
    """
    reference = ""
    copy: Sandbox | None = None
    ready = False

    async def snapshot() -> None:
        nonlocal reference
        assert isinstance(sandbox, Snapshots)
        reference = await sandbox.snapshot(f"{spec.name}.snapshot", spec.labels, marks)

    async def forked() -> None:
        nonlocal copy, ready
        if copy is None:
            acquire = f"{SNAPSHOT}:{reference}"
            copy = await substrate.create(replace(spec, name=f"{spec.name}.fork", acquire=acquire), marks)
        if not ready:
            await copy.wait_ready(marks)
            ready = True
        if (await copy.exec(Command(script="true"))).exit_code:
            raise ExecFailed("the first no-op in a fork failed")

    async def build() -> None:
        assert isinstance(substrate, Builds)
        await substrate.build(f"{spec.name}.image", substrate.dockerfile(), spec.labels, marks)

    if "snapshot" in operations:
        await record(events.SNAPSHOT, snapshot)
        await record(events.FORK, forked, resumes=True)
    if "build" in operations:
        await record(events.BUILD, build)
