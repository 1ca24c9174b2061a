"""A cancellation at any await leaves no unlisted sandbox, no process and no broken sandbox."""

from __future__ import annotations

from functools import partial
from typing import Final

from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance.bench import ALL_BEAT, BEAT, DELAYS_S, Bench, beats_stop, check, expect, works
from taxtui.sandboxes.conformance.walker import cancellations
from taxtui.sandboxes.protocol import Marks

_FOREVER: Final = Command(script=BEAT, timeout_s=120)
_ALL_BEAT: Final = Command(script=ALL_BEAT)


@check("cancel create")
async def cancel_create(bench: Bench) -> None:
    """A cancelled create leaves no sandbox, or a sandbox listed by label."""
    for delay_s in DELAYS_S:
        async for _ in cancellations(lambda: bench.substrate.create(bench.spec(), Marks()), delay_s=delay_s):
            listed = await bench.names()
            expect(all(name.startswith(f"taxtui-{bench.run_id}-") for name in listed), f"unknown names: {listed}")
            await bench.clear()
        await bench.clear()
    await works(await bench.create())


@check("cancel ready")
async def cancel_ready(bench: Bench) -> None:
    """Waiting for readiness can be cancelled and begun again."""
    sandbox = await bench.substrate.create(bench.spec(), Marks())
    for delay_s in DELAYS_S:
        async for _ in cancellations(lambda: sandbox.wait_ready(Marks()), delay_s=delay_s):
            pass
    await sandbox.wait_ready(Marks())
    await works(sandbox)


@check("cancel a command", modes=("exec",))
async def cancel_exec(bench: Bench) -> None:
    """A cancelled command leaves no process, and the sandbox usable."""
    sandbox = await bench.create()
    running = partial(sandbox.exec, _ALL_BEAT)
    for delay_s in DELAYS_S:
        async with beats_stop(sandbox, "after the last cancellation"):
            async for number in cancellations(lambda: sandbox.exec(_FOREVER), delay_s=delay_s, running=running):
                async with beats_stop(sandbox, f"after cancelling at await {number}"):
                    pass
    await works(sandbox)


@check("cancel a command", modes=("session",))
async def cancel_session_exec(bench: Bench) -> None:
    """A cancelled command ends the session with all processes; the sandbox stays usable."""
    sandbox = await bench.create()
    running = partial(sandbox.exec, _ALL_BEAT)
    for delay_s in DELAYS_S:
        session = await sandbox.open_session()
        command = lambda: session.exec(_FOREVER)  # noqa: B023, E731  # same turn
        async for number in cancellations(command, delay_s=delay_s, running=running):
            async with beats_stop(sandbox, f"after cancelling at await {number}"):
                await session.close()
            session = await sandbox.open_session()
        await session.close()
    await works(sandbox)


@check("cancel opening a session")
async def cancel_open(bench: Bench) -> None:
    """Opening a session can be cancelled; the next session opens."""
    bench.requires("session" in bench.capabilities.modes, "the substrate has no session mode")
    sandbox = await bench.create()
    for delay_s in DELAYS_S:
        async for _ in cancellations(sandbox.open_session, delay_s=delay_s, dispose=lambda session: session.close()):
            pass
    session = await sandbox.open_session()
    await works(session)
    await session.close()


@check("cancel destroy")
async def cancel_destroy(bench: Bench) -> None:
    """A cancelled destroy can be repeated, and then the sandbox is gone."""
    for delay_s in DELAYS_S:
        sandbox = await bench.create()
        async for _ in cancellations(lambda: sandbox.destroy(), delay_s=delay_s):  # noqa: B023  # same turn
            await sandbox.destroy()
            await bench.eventually_gone(sandbox.name)
            sandbox = await bench.create()
        await bench.clear()


@check("cancel reset")
async def cancel_reset(bench: Bench) -> None:
    """A cancelled reset can be repeated."""
    bench.requires("reset" in bench.capabilities.acquire, "the substrate cannot reset")
    sandbox = await bench.create()
    for delay_s in DELAYS_S:
        async for _ in cancellations(lambda: sandbox.reset(Marks()), delay_s=delay_s):
            pass
    await sandbox.reset(Marks())
    await works(sandbox)
