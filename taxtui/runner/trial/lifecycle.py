"""Copies and images of a sandbox after the last action of a trial."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from costmodel import events
from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command, Operation, SandboxSpec
from taxtui.sandboxes.lifecycle import SNAPSHOT, Builds, Snapshots
from taxtui.sandboxes.protocol import Marks, Sandbox, Substrate


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
