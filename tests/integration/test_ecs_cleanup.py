"""Whatever happens to the client, nothing is left in the stand-in's own state: no task, no process, no session."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taxtui.plan.spec import Command
from taxtui.runner import watchdog
from taxtui.runner.ledger import LedgerEntry
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support import ecs_standin_victim
from tests.support.ecs_peer_pty import marked
from tests.support.ecs_standin import MARKER, EcsStandin
from tests.support.ecs_standin_cancel import cancelled_at
from tests.support.ecs_standin_setup import CREDENTIALS, options, spec, standin

KILLS = 50


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)


@pytest.fixture
def ecs() -> Iterator[EcsStandin]:
    with standin() as running:
        yield running


async def nothing_is_left(ecs: EcsStandin) -> None:
    """No task, none of their processes, no session; every one of them is looked at."""
    assert ecs.running() == []
    for task in ecs.tasks.values():
        assert marked(f"{MARKER}={task.env[MARKER]}") == []
        assert not Path(task.folder).exists()
    async with asyncio.timeout(5):
        while not all(session.over for session in ecs.sessions()):
            await asyncio.sleep(0.01)


async def test_cancelling_at_any_await_leaves_nothing(ecs: EcsStandin) -> None:
    """The runner's rules: after a cancelled create it finds and reaps by label, after anything else it destroys."""

    async def use(made: Any) -> None:
        await made.wait_ready(Marks())
        session = await made.open_session()
        await session.exec(Command(script="sleep 300 & setsid sleep 300 & echo a"))
        await made.exec(Command(script="sleep 300 & echo b"))
        await session.close()

    async with EcsSubstrate(options(ecs)) as substrate:
        number = 1
        while await cancelled_at(number, substrate.create(spec(f"taxtui-r1-c{number}"), Marks())):
            number += 1
            for left in await substrate.find("r1"):
                await substrate.reap(left)
        assert number > 1
        for left in await substrate.find("r1"):
            await substrate.reap(left)
        awaits = 1
        going_on = True
        while going_on:
            made = await substrate.create(spec(f"taxtui-r1-u{awaits}"), Marks())
            going_on = await cancelled_at(awaits, use(made))
            destroying = await cancelled_at(1 + awaits % 3, made.destroy())
            if destroying:
                await made.destroy()
            awaits += 1
        assert awaits > 10
    await nothing_is_left(ecs)
    assert ecs.active_definitions() == []


@pytest.mark.slow
async def test_after_sigkill_at_random_moments_a_sweep_leaves_nothing(ecs: EcsStandin) -> None:
    rng = random.Random(11)
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.support.ecs_standin_victim"])
    entry = LedgerEntry(run_id="r1", substrates=(), create_timeout_s=0.5)
    killed = made = 0
    async with EcsSubstrate(options(ecs)) as substrate:
        while killed < KILLS:
            victims = [
                forks.Process(target=ecs_standin_victim.run, args=(options(ecs), killed + number), daemon=True)
                for number in range(10)
            ]
            for victim in victims:
                victim.start()
            async with asyncio.timeout(30):
                while len(ecs.tasks) == made:
                    await asyncio.sleep(0.01)
            for victim in victims:
                await asyncio.sleep(rng.random() * 0.3)
                victim.kill()
            for victim in victims:
                await asyncio.to_thread(victim.join)
                assert victim.exitcode == -9
            killed += len(victims)
            made = len(ecs.tasks)
            await watchdog.sweep(entry, [substrate])
            await nothing_is_left(ecs)
    assert made >= KILLS / 5, "they were killed before they had done anything"
