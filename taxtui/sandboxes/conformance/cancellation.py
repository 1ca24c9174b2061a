"""A cancellation at any await leaves no unlisted sandbox, no process and no broken sandbox."""

from __future__ import annotations

from functools import partial
from typing import Final, cast

from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance.bench import ALL_BEAT, BEAT, Bench, check, no_beats, works
from taxtui.sandboxes.conformance.walker import DELAYS_S, cancellations
from taxtui.sandboxes.lifecycle import Resets, Suspends
from taxtui.sandboxes.protocol import Marks, Sandbox

_FOREVER: Final = Command(script=BEAT, timeout_s=120)
_ALL_BEAT: Final = Command(script=ALL_BEAT)


@check("cancel create")
async def cancel_create(bench: Bench) -> None:
    """A cancelled create leaves no sandbox, or a sandbox listed by label."""
    async for _ in cancellations(lambda: bench.substrate.create(bench.spec(), Marks())):
        await bench.only_own()
        await bench.eventually_gone(reap=True)
    await works(await bench.create())


@check("cancel ready")
async def cancel_ready(bench: Bench) -> None:
    """Waiting for readiness can be cancelled and begun again."""
    sandbox = await bench.substrate.create(bench.spec(), Marks())
    async for _ in cancellations(lambda: sandbox.wait_ready(Marks())):
        pass
    await sandbox.wait_ready(Marks())
    await works(sandbox)


@check("cancel a command", modes=("exec",))
async def cancel_exec(bench: Bench) -> None:
    """A cancelled command leaves no process, and the sandbox usable."""
    sandbox = await bench.create()
    async for number in cancellations(lambda: sandbox.exec(_FOREVER), running=partial(sandbox.exec, _ALL_BEAT)):
        await no_beats(sandbox, f"after cancelling at await {number}")
    await no_beats(sandbox, "after the last cancellation")
    await works(sandbox)


@check("cancel a command", modes=("session",))
async def cancel_session_exec(bench: Bench) -> None:
    """A cancelled command ends the session with all processes; the sandbox stays usable."""
    sandbox = await bench.create()
    session, running = await sandbox.open_session(), partial(sandbox.exec, _ALL_BEAT)
    async for number in cancellations(lambda: session.exec(_FOREVER), running=running):  # noqa: B023  # same turn
        await session.close()
        await no_beats(sandbox, f"after cancelling at await {number}")
        session = await sandbox.open_session()
    await session.close()
    await works(sandbox)


@check("cancel opening a session")
async def cancel_open(bench: Bench) -> None:
    """Opening a session can be cancelled; the next session opens."""
    bench.requires("session" in bench.capabilities.modes, "the substrate has no session mode")
    sandbox = await bench.create()
    async for _ in cancellations(sandbox.open_session, dispose=lambda session: session.close()):
        pass
    session = await sandbox.open_session()
    await works(session)
    await session.close()


@check("cancel destroy")
async def cancel_destroy(bench: Bench) -> None:
    """A cancelled destroy, also of a suspended sandbox, can be repeated, and then the sandbox is gone."""
    for suspended in {False, "suspend" in bench.capabilities.lifecycle}:
        for delay_s in DELAYS_S[: 1 if suspended else None]:
            sandbox = await _made(bench, suspended)
            async for _ in cancellations(lambda: sandbox.destroy(), delays_s=(delay_s,)):  # noqa: B023  # same turn
                await sandbox.destroy()
                await bench.eventually_gone(sandbox.name)
                sandbox = await _made(bench, suspended)


async def _made(bench: Bench, suspended: bool) -> Sandbox:
    sandbox = await bench.create()
    if suspended:
        await cast(Suspends, sandbox).suspend(Marks())
    return sandbox


@check("cancel reset")
async def cancel_reset(bench: Bench) -> None:
    """A cancelled reset can be repeated."""
    bench.requires("reset" in bench.capabilities.acquire, "the substrate cannot reset")
    sandbox = await bench.create()
    origin = cast(Resets, sandbox)
    async for _ in cancellations(lambda: origin.reset(Marks())):
        pass
    await origin.reset(Marks())
    await works(sandbox)
