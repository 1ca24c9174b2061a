"""Whatever happens to the client, nothing is left: in the account, of processes and sessions, on disk."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from taxtui.runner.cleanup import watchdog
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.sandboxes.conformance.walker import CancelledAwait
from taxtui.sandboxes.protocol import Marks
from tests.support.command_line import marked
from tests.support.standins import aws_standin_victim
from tests.support.standins.aws_setup import spec, substrate
from tests.support.standins.ecs_standin import MARKER, EcsStandin
from tests.support.waiting import until

pytestmark = pytest.mark.processes

KILLS = 10
CREATE_TIMEOUT_S = 5.0
"""What a run asked for before it was killed, a busy stand-in may answer much later: so long nothing may come."""


async def nothing_is_left(account: Any, *, killed: bool = False) -> None:
    """Nothing in the account, no files and processes of any sandbox, no session.

    A run that was ``killed`` leaves a task definition, which costs nothing.
    """
    left = {kind: names for kind, names in account.leftovers().items() if names}
    if killed:
        left.pop("definitions", None)
    assert left == {}
    if not isinstance(account, EcsStandin):
        assert not [machine for machine in account.machines.values() if machine.folder.exists()]
        return
    for task in account.tasks.values():
        assert marked(f"{MARKER}={task.env[MARKER]}".encode()) == []
        assert not Path(task.folder).exists()
    await until(lambda: all(session.over for session in account.sessions()), "every session is over")


def ever_made(account: Any) -> int:
    """How many sandboxes there have ever been."""
    return len(account.tasks if isinstance(account, EcsStandin) else account.machines)


async def reap(substrate: Any) -> None:
    for left in await substrate.find("r1"):
        await substrate.reap(left)


async def cancelled_at(number: int, work: Coroutine[Any, Any, object]) -> bool:
    """Whether the coroutine was suspended that often, and so was cancelled there, whatever it waited for."""
    step = CancelledAwait(work, number, 0.0)
    task = asyncio.ensure_future(step)
    await asyncio.wait({task})
    if not step.cancelled:
        task.result()
    return step.cancelled


async def test_cancelling_the_first_create_of_a_run_at_any_await_leaves_nothing(account: Any) -> None:
    """A first create makes more than those after it. The runner's rule: it finds and reaps by label."""
    number, going_on = 0, True
    while going_on:
        number += 1
        async with substrate(account) as connected:
            await reap(connected)  # leaving the last one has waited for what still ran in a thread
            going_on = await cancelled_at(number, connected.create(spec(f"taxtui-r1-c{number}"), Marks()))
            await reap(connected)
    async with substrate(account) as connected:
        await reap(connected)
    assert number > (1 if isinstance(account, EcsStandin) else 3)
    gc.collect()  # a connection that nobody has closed tells so here
    await nothing_is_left(account)


@pytest.mark.slow
async def test_after_sigkill_at_random_moments_a_sweep_leaves_nothing(account: Any) -> None:
    rng = random.Random(12)
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload([aws_standin_victim.__name__])
    entry = LedgerEntry(run_id="r1", substrates=(), create_timeout_s=CREATE_TIMEOUT_S)
    async with substrate(account) as connected:
        about = (type(connected), connected.options)
        victims = [forks.Process(target=aws_standin_victim.run, args=(*about, number)) for number in range(KILLS)]
        for victim in victims:
            victim.start()
        await until(lambda: ever_made(account), "the first of them has made something")
        for victim in victims:
            await asyncio.sleep(rng.random() * 0.3)
            victim.kill()
        for victim in victims:
            await asyncio.to_thread(victim.join)
            assert victim.exitcode == -9
        await watchdog.sweep(entry, [connected])
        await nothing_is_left(account, killed=True)
