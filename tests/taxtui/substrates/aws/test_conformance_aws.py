"""The shipped suite on EC2, against moto with a real sshd behind every instance, and on ECS, against an emulator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support.lent import OWNING, SHARING, lent, passes
from tests.support.standins import ec2_standin_setup, ecs_standin_setup
from tests.support.standins.ecs_standin_setup import CREDENTIALS

pytestmark = pytest.mark.processes


class Service(NamedTuple):
    standin: Callable[[], AbstractContextManager[Any]]
    substrate: Callable[[Any], Substrate]
    left: Callable[[Any], object]
    none_left: object
    ttl_s: float


KINDS = {
    "ec2": Service(
        standin=ec2_standin_setup.standin,
        substrate=lambda ec2: Ec2Substrate(ec2_standin_setup.options(ec2)),
        left=lambda ec2: {kind: names for kind, names in ec2.leftovers().items() if names},
        none_left={},
        ttl_s=60.0,
    ),
    # The suite opens more concurrent sessions than an agent's default allows.
    "ecs": Service(
        standin=lambda: ecs_standin_setup.standin(sessions_limit=4),
        substrate=lambda ecs: EcsSubstrate(ecs_standin_setup.options(ecs, sessions=4)),
        left=lambda ecs: (ecs.running(), ecs.active_definitions()),
        none_left=([], []),
        ttl_s=1.0,
    ),
}


class Account:
    """An emulated account for all checks; a sandbox that is lent to checks may exist before and after a check."""

    def __init__(self, service: Service, running: Any) -> None:
        self.service, self.running = service, running

    def substrate(self) -> Substrate:
        return self.service.substrate(self.running)

    async def passes(self, check: Check, factory: Factory) -> None:
        before = self.service.left(self.running)
        await passes(check, factory, short_ttl_s=self.service.ttl_s)
        assert self.service.left(self.running) == before


@pytest.fixture(scope="module", params=[pytest.param("ec2", marks=pytest.mark.sshd), "ecs"])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    service = KINDS[request.param]
    with pytest.MonkeyPatch.context() as patch, service.standin() as running:
        for key, value in CREDENTIALS.items():
            patch.setenv(key, value)
        yield Account(service, running)
        assert service.left(running) == service.none_left


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance(check: Check, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    if check.name == "deadline" and hasattr(account.running, "minute_s"):
        monkeypatch.setattr(account.running, "minute_s", 2.0)
    await account.passes(check, account.substrate)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(account: Account) -> AsyncIterator[Substrate]:
    async with lent(account.substrate) as one:
        yield one


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands(check: Check, account: Account, sandbox: Substrate) -> None:
    await account.passes(check, lambda: sandbox)
