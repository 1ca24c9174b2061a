"""Whatever happens to the client, nothing is left: in the account, of processes and sessions, on disk."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from taxtui.plan.spec import Command
from taxtui.runner.cleanup import watchdog
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support.cancelling import cancelled_at
from tests.support.standins import aws_standin_victim, ec2_standin_setup, ecs_standin_setup
from tests.support.standins.ecs_peer_pty import marked
from tests.support.standins.ecs_standin import MARKER, EcsStandin
from tests.support.standins.ecs_standin_setup import CREDENTIALS, spec
from tests.support.waiting import until

pytestmark = pytest.mark.processes

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

KILLS = 20
CREATE_TIMEOUT_S = 5.0
"""What a run asked for before it was killed, a busy stand-in may answer much later: so long nothing may come."""


async def no_instance(ec2: Ec2Standin) -> None:
    """No instance, volume, key pair or security group, and no files of any machine."""
    assert not any(ec2.leftovers().values()), ec2.leftovers()
    assert not [machine for machine in ec2.machines.values() if machine.folder.exists()]


async def no_task(ecs: EcsStandin) -> None:
    """No task, none of their processes, no session; every one of them is looked at."""
    assert ecs.running() == []
    for task in ecs.tasks.values():
        assert marked(f"{MARKER}={task.env[MARKER]}") == []
        assert not Path(task.folder).exists()
    await until(lambda: all(session.over for session in ecs.sessions()), "every session is over")


class Kind(NamedTuple):
    """Of the two, each with a stand-in that really runs commands."""

    standin: Callable[[], AbstractContextManager[Any]]
    options: Callable[[Any], Any]
    substrate: Callable[[Any], Any]
    made: Callable[[Any], int]
    nothing_is_left: Callable[[Any], Awaitable[None]]
    registered: Callable[[Any], list[str]]
    """What a run registers besides and takes back when it ends in good order; it costs nothing."""
    create_awaits: int
    """At least so often a create is suspended."""


KINDS = {
    "ec2": Kind(
        ec2_standin_setup.standin,
        ec2_standin_setup.options,
        Ec2Substrate,
        lambda ec2: len(ec2.machines),
        no_instance,
        lambda ec2: [],
        3,
    ),
    "ecs": Kind(
        ecs_standin_setup.standin,
        ecs_standin_setup.options,
        EcsSubstrate,
        lambda ecs: len(ecs.tasks),
        no_task,
        EcsStandin.active_definitions,
        1,
    ),
}


class Account:
    """One of the kinds, with its stand-in running."""

    def __init__(self, kind: Kind, running: Any) -> None:
        self.kind, self.running = kind, running
        self.options = kind.options(running)

    def connect(self) -> Any:
        return self.kind.substrate(self.options)

    def made(self) -> int:
        """How many sandboxes there have ever been."""
        return self.kind.made(self.running)

    def registered(self) -> list[str]:
        return self.kind.registered(self.running)

    async def nothing_is_left(self) -> None:
        await self.kind.nothing_is_left(self.running)


@pytest.fixture(params=[pytest.param("ec2", marks=pytest.mark.sshd), "ecs"])
def account(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)
    kind = KINDS[request.param]
    with kind.standin() as running:
        yield Account(kind, running)


async def reap(substrate: Any) -> None:
    for left in await substrate.find("r1"):
        await substrate.reap(left)


async def use(made: Any) -> None:
    await made.wait_ready(Marks())
    session = await made.open_session()
    await session.exec(Command(script="sleep 300 & setsid sleep 300 & echo a"))
    await made.exec(Command(script="sleep 300 & echo b"))
    await session.close()


async def test_cancelling_create_at_any_await_leaves_nothing(account: Account) -> None:
    """The runner's rule: after a cancelled create it finds and reaps by label."""
    number, going_on = 0, True
    while going_on:  # a substrate for each: the first create makes more than the second
        number += 1
        async with account.connect() as substrate:
            await reap(substrate)  # leaving the last one has waited for what still ran in a thread
            going_on = await cancelled_at(number, substrate.create(spec(f"taxtui-r1-c{number}"), Marks()))
            await reap(substrate)
    async with account.connect() as substrate:
        await reap(substrate)
    assert number > account.kind.create_awaits
    await account.nothing_is_left()
    assert account.registered() == []


async def test_cancelling_anything_else_at_any_await_leaves_nothing(account: Account) -> None:
    """The runner's rule: after anything but a create it destroys, and again if that was cancelled."""
    async with account.connect() as substrate:
        number, going_on = 0, True
        while going_on:
            number += 1
            made = await substrate.create(spec(f"taxtui-r1-u{number}"), Marks())
            going_on = await cancelled_at(number, use(made))
            if await cancelled_at(1 + number % 3, made.destroy()):
                await made.destroy()
        assert number > 10
    gc.collect()  # a connection that nobody has closed tells so here
    await account.nothing_is_left()
    assert account.registered() == []


@pytest.mark.slow
async def test_after_sigkill_at_random_moments_a_sweep_leaves_nothing(account: Account) -> None:
    rng = random.Random(12)
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.support.standins.aws_standin_preload"])
    entry = LedgerEntry(run_id="r1", substrates=(), create_timeout_s=CREATE_TIMEOUT_S)
    killed = made = 0
    async with account.connect() as substrate:
        while killed < KILLS:
            victims = [
                forks.Process(target=aws_standin_victim.run, args=(account.options, killed + number), daemon=True)
                for number in range(10)
            ]
            for victim in victims:
                victim.start()
            await until(lambda: account.made() > made, "the first of them has made something")  # noqa: B023  # same turn
            for victim in victims:
                await asyncio.sleep(rng.random() * 0.3)
                victim.kill()
            for victim in victims:
                await asyncio.to_thread(victim.join)
                assert victim.exitcode == -9
            killed += len(victims)
            made = account.made()
            await watchdog.sweep(entry, [substrate])
            await account.nothing_is_left()
    assert made >= KILLS / 5, "they were killed before they had done anything"
