"""Checks of ``suspend`` and ``resume``: the state that survives, and the removal of a suspended sandbox."""

from __future__ import annotations

import asyncio
from typing import Final, cast

from taxtui.errors import SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance.bench import Bench, NotApplicable, check, equal, expect
from taxtui.sandboxes.conformance.walker import cancellations
from taxtui.sandboxes.lifecycle import Suspends
from taxtui.sandboxes.protocol import Marks, Sandbox, Session

_PAUSE_S: Final = 3.0
_CPU_SLACK_NS: Final = 20_000_000
"""CPU time that a host may still add to a sandbox's account after the suspension."""
_TICK: Final = "while :; do date +%s >> ticks; sleep 0.1; done </dev/null >/dev/null 2>&1 &"
_LONGEST_GAP: Final = "awk 'NR > 1 && $1 - last > gap {gap = $1 - last} {last = $1} END {print gap + 0}' ticks"


async def _suspendable(bench: Bench) -> tuple[Sandbox, Suspends]:
    if "suspend" not in bench.capabilities.lifecycle:
        raise NotApplicable("the substrate cannot suspend")
    sandbox = await bench.create()
    expect(isinstance(sandbox, Suspends), "the capability is suspend, and the sandbox has no suspend, resume, usage")
    return sandbox, cast(Suspends, sandbox)


async def _works(sandbox: Sandbox | Session) -> None:
    equal((await sandbox.exec(Command(script="echo works"))).stdout, b"works\n", "a command after the resume")


@check("suspend and resume")
async def suspend_and_resume(bench: Bench) -> None:
    """A suspended sandbox stops; files survive, and processes, sessions and clock unless declared lost."""
    sandbox, life = await _suspendable(bench)
    lost = bench.capabilities.suspend_loses
    sessions = "session" in bench.capabilities.modes and "sessions" not in lost
    session = await sandbox.open_session() if sessions else None
    equal((await sandbox.exec(Command(script="echo x > note"))).exit_code, 0, "exit code of writing a file")
    ticks = "processes" not in lost and await _ticks(session or sandbox)
    sleeping = None
    if session and "clock" not in lost:
        script = "began=$(date +%s); sleep 1; echo $(($(date +%s) - began))"
        sleeping = asyncio.ensure_future(session.exec(Command(script=script)))
        await asyncio.sleep(0.3)
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
    if sleeping is not None:
        told = int((await sleeping).stdout)
        expect(
            told >= _PAUSE_S - 1, f"a sleep of 1 s took {told} s by the sandbox's clock over a pause of {_PAUSE_S:g} s"
        )
    await _works(sandbox)
    equal((await sandbox.exec(Command(script="cat note"))).stdout, b"x\n", "a file from before")
    if ticks:
        gap = int((await sandbox.exec(Command(script=_LONGEST_GAP))).stdout)
        expect(gap >= _PAUSE_S - 1, f"a process wrote every {gap} s over a suspension of {_PAUSE_S:g} s")
        grows = Command(script="wc -l < ticks; sleep 1; wc -l < ticks")
        first, second = map(int, (await sandbox.exec(grows)).stdout.split())
        expect(second > first, "a process from before no longer runs, and suspend_loses does not name processes")
    if session:
        await _works(session)
        await session.close()


async def _ticks(path: Sandbox | Session) -> bool:
    """Start a process that writes the time for as long as it runs; False where no process outlives its command."""
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
    """A suspension or a resume that is cancelled at any await leaves a sandbox that resumes, and can be removed."""
    sandbox, life = await _suspendable(bench)
    for delay_s in (0.0, 0.2):
        async for _ in cancellations(lambda: life.suspend(Marks()), delay_s=delay_s):
            await life.resume(Marks())
            await _works(sandbox)
        await life.suspend(Marks())
        async for _ in cancellations(lambda: life.resume(Marks()), delay_s=delay_s):
            await life.suspend(Marks())
        await life.resume(Marks())
        await _works(sandbox)
    await sandbox.destroy()

    async def removed() -> None:
        await sandbox.destroy()

    sandbox, life = await _suspendable(bench)
    await life.suspend(Marks())
    async for _ in cancellations(removed):
        await sandbox.destroy()
        await bench.eventually_gone(sandbox.name)
        sandbox, life = await _suspendable(bench)
        await life.suspend(Marks())


@check("a command while suspended")
async def command_while_suspended(bench: Bench) -> None:
    """A command that runs when its sandbox is suspended ends after the resume; a new one fails or waits for it."""
    sandbox, life = await _suspendable(bench)
    if "processes" in bench.capabilities.suspend_loses:
        raise NotApplicable("processes are lost")
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
    await _works(sandbox)
