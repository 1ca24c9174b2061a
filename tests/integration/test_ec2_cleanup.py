"""Whatever happens to the client, nothing is left in the account: no instance, volume, key pair or security group."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections.abc import Iterator
from typing import Any

import pytest

from taxtui.plan.spec import Command
from taxtui.runner import watchdog
from taxtui.runner.ledger import LedgerEntry
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from tests.support import ec2_standin_victim
from tests.support.ec2_standin import Ec2Standin
from tests.support.ec2_standin_setup import options, standin
from tests.support.ecs_standin_cancel import cancelled_at
from tests.support.ecs_standin_setup import CREDENTIALS, spec

pytestmark = pytest.mark.sshd

KILLS = 50


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)


@pytest.fixture
def ec2() -> Iterator[Ec2Standin]:
    with standin() as running:
        yield running


def nothing_is_left(ec2: Ec2Standin) -> None:
    """Every kind of thing that a run makes is looked at, and the files of every machine."""
    assert not any(ec2.leftovers().values()), ec2.leftovers()
    assert not [machine for machine in ec2.machines.values() if machine.folder.exists()]


async def test_cancelling_at_any_await_leaves_nothing(ec2: Ec2Standin) -> None:
    """The runner's rules: after a cancelled create it finds and reaps by label, after anything else it destroys."""

    async def use(made: Any) -> None:
        await made.wait_ready(Marks())
        session = await made.open_session()
        await session.exec(Command(script="sleep 300 & setsid sleep 300 & echo a"))
        await made.exec(Command(script="sleep 300 & echo b"))
        await session.close()

    number = 1
    going_on = True
    while going_on:
        async with Ec2Substrate(options(ec2)) as substrate:  # a new one each time: the first create makes the group
            going_on = await cancelled_at(number, substrate.create(spec(f"taxtui-r1-c{number}"), Marks()))
            await asyncio.sleep(0.05)  # for what still ran in a thread
            for left in await substrate.find("r1"):
                await substrate.reap(left)
        number += 1
    assert number > 5
    nothing_is_left(ec2)
    async with Ec2Substrate(options(ec2)) as substrate:
        awaits = 1
        going_on = True
        while going_on:
            made = await substrate.create(spec(f"taxtui-r1-u{awaits}"), Marks())
            going_on = await cancelled_at(awaits, use(made))
            if await cancelled_at(1 + awaits % 3, made.destroy()):
                await made.destroy()
            awaits += 1
        assert awaits > 10
    nothing_is_left(ec2)


@pytest.mark.slow
async def test_after_sigkill_at_random_moments_a_sweep_leaves_nothing(ec2: Ec2Standin) -> None:
    rng = random.Random(12)
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.support.ec2_standin_victim"])
    entry = LedgerEntry(run_id="r1", substrates=(), create_timeout_s=0.5)
    killed = made = 0
    async with Ec2Substrate(options(ec2)) as substrate:
        while killed < KILLS:
            victims = [
                forks.Process(target=ec2_standin_victim.run, args=(options(ec2), killed + number), daemon=True)
                for number in range(10)
            ]
            for victim in victims:
                victim.start()
            async with asyncio.timeout(60):
                while len(ec2.machines) == made:
                    await asyncio.sleep(0.01)
            for victim in victims:
                await asyncio.sleep(rng.random() * 0.3)
                victim.kill()
            for victim in victims:
                await asyncio.to_thread(victim.join)
                assert victim.exitcode == -9
            killed += len(victims)
            made = len(ec2.machines)
            await watchdog.sweep(entry, [substrate])
            nothing_is_left(ec2)
    assert made >= KILLS / 5, "they were killed before they had done anything"
