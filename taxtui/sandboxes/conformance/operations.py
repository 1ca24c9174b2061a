"""Checks of the optional operations: ``suspend`` and ``resume``, ``snapshot`` and fork, ``build``."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, cast

from taxtui.errors import SubstrateError
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.conformance.bench import (
    Bench,
    NotApplicable,
    check,
    equal,
    expect,
    output_of,
    works,
)
from taxtui.sandboxes.conformance.walker import cancellations
from taxtui.sandboxes.lifecycle import SNAPSHOT, Builds, Snapshots, Suspends
from taxtui.sandboxes.protocol import Marks, Sandbox, Session

_PAUSE_S: Final = 3.0
_CPU_SLACK_NS: Final = 20_000_000
"""CPU time still added to a sandbox's account after the suspension."""
_TICK: Final = "while :; do date +%s >> ticks; sleep 0.1; done </dev/null >/dev/null 2>&1 &"
_LONGEST_GAP: Final = "awk 'NR > 1 && $1 - last > gap {gap = $1 - last} {last = $1} END {print gap + 0}' ticks"


async def _suspendable(bench: Bench) -> tuple[Sandbox, Suspends]:
    bench.requires("suspend" in bench.capabilities.lifecycle, "the substrate cannot suspend")
    sandbox = await bench.create()
    expect(isinstance(sandbox, Suspends), "the capability is suspend, and the sandbox has no suspend, resume, usage")
    return sandbox, cast(Suspends, sandbox)


@check("suspend and resume")
async def suspend_and_resume(bench: Bench) -> None:
    """A suspended sandbox stops; files survive, and processes and sessions unless declared lost."""
    sandbox, life = await _suspendable(bench)
    lost = bench.capabilities.suspend_loses
    sessions = "session" in bench.capabilities.modes and "sessions" not in lost
    session = await sandbox.open_session() if sessions else None
    await output_of(sandbox, "echo x > note")
    ticks = "processes" not in lost and await _ticks(session or sandbox)
    await life.suspend(Marks())
    await life.suspend(Marks())
    before = await life.usage()
    await asyncio.sleep(_PAUSE_S)
    after = await life.usage()
    if before.cpu_ns >= 0:
        used_ns = after.cpu_ns - before.cpu_ns
        expect(0 <= used_ns <= _CPU_SLACK_NS, f"it used {used_ns / 1e6:.1f} ms of CPU while suspended")
    await life.resume(Marks())
    await life.resume(Marks())
    await works(sandbox)
    equal(await output_of(sandbox, "cat note"), b"x\n", "a file from before")
    if ticks:
        gap = int(await output_of(sandbox, _LONGEST_GAP))
        expect(gap >= _PAUSE_S - 1, f"a process wrote every {gap} s over a suspension of {_PAUSE_S:g} s")
        first, second = map(int, (await output_of(sandbox, "wc -l < ticks; sleep 1; wc -l < ticks")).split())
        expect(second > first, "a process from before no longer runs, and suspend_loses does not name processes")
    if session:
        await works(session)
        await session.close()


async def _ticks(path: Sandbox | Session) -> bool:
    """Start a process to write the time; False if no process outlives a command."""
    await path.exec(Command(script=_TICK))
    grown = await path.exec(Command(script="sleep 0.5; wc -l < ticks; sleep 0.5; wc -l < ticks"))
    counts = grown.stdout.split()
    return len(counts) == 2 and int(counts[1]) > int(counts[0])


@check("destroy while suspended")
async def destroy_suspended(bench: Bench) -> None:
    """A suspended sandbox is listed, and removed by destroy and by another process's reap."""
    for by_reap in (False, True):
        sandbox, life = await _suspendable(bench)
        await life.suspend(Marks())
        listed = [entry for entry in await bench.substrate.find(bench.run_id) if entry.name == sandbox.name]
        equal(len(listed), 1, "entries of find for a suspended sandbox")
        if by_reap:
            async with bench.factory() as cleaner:
                await cleaner.reap(listed[0])
        await sandbox.destroy()
        await bench.eventually_gone(sandbox.name)


@check("cancel suspend and resume")
async def cancel_suspension(bench: Bench) -> None:
    """A suspend or resume, cancelled at any await, leaves a resumable and removable sandbox."""
    sandbox, life = await _suspendable(bench)
    async for _ in cancellations(lambda: life.suspend(Marks()), dispose=lambda _: life.resume(Marks())):
        await life.resume(Marks())
        await works(sandbox)
    await life.suspend(Marks())
    async for _ in cancellations(lambda: life.resume(Marks()), dispose=lambda _: life.suspend(Marks())):
        await life.suspend(Marks())
    await life.resume(Marks())
    await works(sandbox)


@check("a command while suspended")
async def command_while_suspended(bench: Bench) -> None:
    """A running command continues after the resume; a new command in a suspended sandbox fails or waits."""
    sandbox, life = await _suspendable(bench)
    bench.requires("processes" not in bench.capabilities.suspend_loses, "processes are lost")
    running = asyncio.ensure_future(sandbox.exec(Command(script="sleep 2; echo done")))
    await asyncio.sleep(0.5)
    await life.suspend(Marks())
    if running.done():
        raise NotApplicable("the suspension took longer than a command of 2 s")
    second = asyncio.ensure_future(sandbox.exec(Command(script="echo late")))
    await asyncio.sleep(_PAUSE_S)
    expect(not running.done(), "a command ended in a suspended sandbox")
    if second.done():
        error = second.exception()
        expect(error is not None, "a command ran in a suspended sandbox")
        expect(isinstance(error, SubstrateError), f"a command in a suspended sandbox raised {type(error).__name__}")
    await life.resume(Marks())
    equal((await running).stdout, b"done\n", "the command from before")
    await asyncio.wait({second})
    await works(sandbox)


# -- snapshots and builds

_BUILDING_S: Final = 0.1
"""Shorter suspensions of a build are not cancelled: a build has dozens."""


def _copied(spec: SandboxSpec) -> tuple[str, dict[str, str]]:
    """The name and the labels of a copy, after those of a sandbox."""
    return f"{spec.name}.copy", spec.labels


async def _snapshotted(bench: Bench) -> tuple[Sandbox, Snapshots]:
    bench.requires("snapshot" in bench.capabilities.lifecycle, "the substrate has no snapshots")
    sandbox = await bench.create()
    expect(isinstance(sandbox, Snapshots), "the capability is snapshot, and the sandbox has no snapshot")
    return sandbox, cast(Snapshots, sandbox)


async def _fork(bench: Bench, reference: str) -> Sandbox:
    return await bench.create(bench.spec(acquire=f"{SNAPSHOT}:{reference}"))


def _builder(bench: Bench) -> Builds:
    bench.requires("build" in bench.capabilities.lifecycle, "the substrate builds no images")
    expect(isinstance(bench.substrate, Builds), "the capability is build, and the substrate has no build")
    return cast(Builds, bench.substrate)


@check("snapshot and fork")
async def snapshot_and_fork(bench: Bench) -> None:
    """Forks have the files of the snapshot, do not see each other's changes, and outlive their origin."""
    sandbox, origin = await _snapshotted(bench)
    await output_of(sandbox, "mkdir -p deep && echo before > deep/note && chmod 750 deep")
    reference = await origin.snapshot(*_copied(bench.spec()), Marks())
    equal(await output_of(sandbox, "cat deep/note"), b"before\n", "the origin's file after the snapshot")
    await output_of(sandbox, "echo after > deep/note")
    first = await _fork(bench, reference)
    second = await _fork(bench, reference)
    expect(first.name != second.name, "two forks have one name")
    equal(await output_of(first, "cat deep/note; find deep -maxdepth 0 -perm 750"), b"before\ndeep\n", "a fork's file")
    await output_of(first, "echo mine > deep/note")
    equal(await output_of(second, "cat deep/note"), b"before\n", "the other fork's file")
    equal(await output_of(sandbox, "cat deep/note"), b"after\n", "the origin's file")
    await sandbox.destroy()
    equal(await output_of(first, "cat deep/note"), b"mine\n", "a fork's file after the end of the origin")
    listed = await bench.names()
    expect(len(listed) >= 3, f"find lists {sorted(listed)}: two forks and their snapshot are expected")


@check("build")
async def build(bench: Bench) -> None:
    """A built image has the files of its steps; a failed build raises, and find lists any remains."""
    builder = _builder(bench)
    base = builder.dockerfile().splitlines()[0]
    name, labels = _copied(bench.spec())
    reference = await builder.build(name, f"{base}\nRUN echo built > /tmp/built\n", labels, Marks())
    sandbox = await _fork(bench, reference)
    equal(await output_of(sandbox, "cat /tmp/built"), b"built\n", "a file of the image")
    try:
        await builder.build(f"{name}.broken", f"{base}\nRUN echo x > /tmp/x\nRUN exit 7\n", labels, Marks())
    except SubstrateError:
        return
    expect(False, "a build with a failing step raised nothing")


@check("cancel snapshot and fork")
async def cancel_copies(bench: Bench) -> None:
    """A snapshot or fork, cancelled at any await, leaves nothing, or a copy listed by find; the origin works."""
    sandbox, origin = await _snapshotted(bench)
    async for _ in cancellations(lambda: origin.snapshot(*_copied(bench.spec()), Marks())):
        await works(sandbox)
    reference = await origin.snapshot(*_copied(bench.spec()), Marks())
    async for _ in cancellations(lambda: _fork(bench, reference)):
        await bench.only_own()


@check("cancel build")
async def cancel_build(bench: Bench) -> None:
    """A cancelled build leaves nothing, or images and sandboxes listed by find."""
    builder = _builder(bench)

    def build() -> Coroutine[Any, Any, str]:
        name, labels = _copied(bench.spec())
        return builder.build(name, builder.dockerfile(), labels, Marks())

    async for _ in cancellations(build, delays_s=(_BUILDING_S,), limit=5):
        pass
