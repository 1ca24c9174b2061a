"""Checks of ``snapshot``, fork and ``build``: contents, independence, and removal."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final, cast

from taxtui.errors import SubstrateError
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.conformance.bench import Bench, NotApplicable, check, equal, expect
from taxtui.sandboxes.conformance.walker import cancellations
from taxtui.sandboxes.lifecycle import Builds, Snapshots, fork
from taxtui.sandboxes.protocol import Marks, Sandbox

_DELAYS_S: Final = (0.0, 0.2)
_BUILDING_S: Final = 0.1
"""Shorter suspensions of a build are not cancelled: a build has dozens."""


def _copied(spec: SandboxSpec) -> tuple[str, dict[str, str]]:
    """The name and the labels of a copy, after those of a sandbox."""
    return f"{spec.name}.copy", spec.labels


async def _snapshotted(bench: Bench) -> tuple[Sandbox, Snapshots]:
    if "snapshot" not in bench.capabilities.lifecycle:
        raise NotApplicable("the substrate has no snapshots")
    sandbox = await bench.create()
    expect(isinstance(sandbox, Snapshots), "the capability is snapshot, and the sandbox has no snapshot")
    return sandbox, cast(Snapshots, sandbox)


def _builder(bench: Bench) -> Builds:
    if "build" not in bench.capabilities.lifecycle:
        raise NotApplicable("the substrate builds no images")
    expect(isinstance(bench.substrate, Builds), "the capability is build, and the substrate has no build")
    return cast(Builds, bench.substrate)


async def _output(sandbox: Sandbox, script: str) -> bytes:
    result = await sandbox.exec(Command(script=script))
    equal(result.exit_code, 0, f"exit code of {script!r} ({result.stderr.decode(errors='replace')[:200]})")
    return result.stdout


@check("snapshot and fork")
async def snapshot_and_fork(bench: Bench) -> None:
    """Forks have the files of the snapshot, do not see each other's changes, and outlive their origin."""
    sandbox, origin = await _snapshotted(bench)
    await _output(sandbox, "mkdir -p deep && echo before > deep/note && chmod 750 deep")
    reference = await origin.snapshot(*_copied(bench.spec()), Marks())
    equal(await _output(sandbox, "cat deep/note"), b"before\n", "the origin's file after the snapshot")
    await _output(sandbox, "echo after > deep/note")
    first = await fork(bench.substrate, reference, bench.spec(), Marks())
    second = await fork(bench.substrate, reference, bench.spec(), Marks())
    expect(first.name != second.name, "two forks have one name")
    equal(await _output(first, "cat deep/note; find deep -maxdepth 0 -perm 750"), b"before\ndeep\n", "a fork's file")
    await _output(first, "echo mine > deep/note")
    equal(await _output(second, "cat deep/note"), b"before\n", "the other fork's file")
    equal(await _output(sandbox, "cat deep/note"), b"after\n", "the origin's file")
    await sandbox.destroy()
    equal(await _output(first, "cat deep/note"), b"mine\n", "a fork's file after the end of its origin")
    listed = await bench.names()
    expect(len(listed) >= 3, f"find lists {sorted(listed)}: two forks and their snapshot are expected")


@check("build")
async def build(bench: Bench) -> None:
    """A built image has the files of its steps; a build that fails raises, and find lists what it leaves."""
    builder = _builder(bench)
    base = builder.dockerfile().splitlines()[0]
    name, labels = _copied(bench.spec())
    reference = await builder.build(name, f"{base}\nRUN echo built > /tmp/built\n", labels, Marks())
    sandbox = await fork(bench.substrate, reference, bench.spec(), Marks())
    equal(await _output(sandbox, "cat /tmp/built"), b"built\n", "a file of the image")
    try:
        await builder.build(f"{name}.broken", f"{base}\nRUN echo x > /tmp/x\nRUN exit 7\n", labels, Marks())
    except SubstrateError:
        return
    expect(False, "a build with a failing step raised nothing")


@check("cancel snapshot")
async def cancel_snapshot(bench: Bench) -> None:
    """A snapshot that is cancelled at any await leaves nothing, or a copy that find lists; the sandbox works."""
    sandbox, origin = await _snapshotted(bench)
    for delay_s in _DELAYS_S:
        async for _ in cancellations(lambda: origin.snapshot(*_copied(bench.spec()), Marks()), delay_s=delay_s):
            equal(await _output(sandbox, "echo works"), b"works\n", "a command after the cancellation")


@check("cancel fork")
async def cancel_fork(bench: Bench) -> None:
    """A fork that is cancelled at any await leaves nothing, or a sandbox that find lists."""
    _, origin = await _snapshotted(bench)
    reference = await origin.snapshot(*_copied(bench.spec()), Marks())
    for delay_s in _DELAYS_S:
        async for _ in cancellations(lambda: fork(bench.substrate, reference, bench.spec(), Marks()), delay_s=delay_s):
            listed = await bench.names()
            expect(all(name.startswith(f"taxtui-{bench.run_id}-") for name in listed), f"unknown names: {listed}")


@check("cancel build")
async def cancel_build(bench: Bench) -> None:
    """A build that is cancelled leaves nothing, or images and sandboxes that find lists."""
    builder = _builder(bench)

    def build() -> Coroutine[Any, Any, str]:
        name, labels = _copied(bench.spec())
        return builder.build(name, builder.dockerfile(), labels, Marks())

    async for _ in cancellations(build, delay_s=_BUILDING_S, limit=5):
        pass
