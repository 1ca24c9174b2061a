"""The shipped suite on EC2, against moto with a real sshd behind every instance, and on ECS, against an emulator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from tests.support.lent import OWNING, SHARING, lent, passes
from tests.support.standins.aws_setup import CREDENTIALS, standin, substrate
from tests.support.standins.ecs_standin import EcsStandin

pytestmark = pytest.mark.processes


class Account:
    """An emulated account for all checks; a sandbox that is lent to checks may exist before and after a check."""

    def __init__(self, running: Any) -> None:
        self.running = running

    def substrate(self) -> Substrate:
        # The suite opens more concurrent sessions than an agent's default allows.
        ecs = isinstance(self.running, EcsStandin)
        made: Substrate = substrate(self.running, **({"sessions": 4} if ecs else {}))
        return made

    async def passes(self, check: Check, factory: Factory) -> None:
        before = self.running.leftovers()
        await passes(check, factory, short_ttl_s=3.0 if isinstance(self.running, EcsStandin) else 60.0)
        assert self.running.leftovers() == before


@pytest.fixture(scope="module", params=[pytest.param("ec2", marks=pytest.mark.sshd), "ecs"])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    public = {"sessions_limit": 4} if request.param == "ecs" else {}
    with pytest.MonkeyPatch.context() as patch, standin(request.param, **public) as running:
        for key, value in CREDENTIALS.items():
            patch.setenv(key, value)
        yield Account(running)
        assert not any(running.leftovers().values())


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
