"""The shipped suite on the EC2 adapter, against moto with a real sshd behind every instance."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from tests.support.lent import OWNING, SHARING, lent, passes
from tests.support.standins.ec2_standin_setup import options, standin
from tests.support.standins.ecs_standin_setup import CREDENTIALS

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin

pytestmark = [pytest.mark.sshd, pytest.mark.processes]


@pytest.fixture(scope="module")
def ec2() -> Iterator[Ec2Standin]:
    with pytest.MonkeyPatch.context() as patch, standin(minute_s=60.0) as running:
        for key, value in CREDENTIALS.items():
            patch.setenv(key, value)
        yield running
        assert not any(running.leftovers().values()), running.leftovers()


async def _run(check: Check, factory: Factory, ec2: Ec2Standin) -> None:
    """A sandbox that is lent may be there, before and after."""
    before = ec2.leftovers()
    await passes(check, factory, short_ttl_s=60.0)
    assert ec2.leftovers() == before


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance(check: Check, ec2: Ec2Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    if check.name == "deadline":
        monkeypatch.setattr(ec2, "minute_s", 2.0)
    await _run(check, lambda: Ec2Substrate(options(ec2)), ec2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def instance(ec2: Ec2Standin) -> AsyncIterator[Substrate]:
    async with lent(lambda: Ec2Substrate(options(ec2))) as one:
        yield one


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands(check: Check, ec2: Ec2Standin, instance: Substrate) -> None:
    await _run(check, lambda: instance, ec2)
