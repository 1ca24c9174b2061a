"""The shipped suite on the ECS adapter, against the stand-in that really executes commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support.lent import OWNING, SHARING, lent, passes
from tests.support.standins.ecs_standin import EcsStandin
from tests.support.standins.ecs_standin_setup import CREDENTIALS, options, standin

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def ecs() -> Iterator[EcsStandin]:
    # The suite opens more sessions at a time than an agent's default allows.
    with pytest.MonkeyPatch.context() as patch, standin(sessions_limit=4) as running:
        for key, value in CREDENTIALS.items():
            patch.setenv(key, value)
        yield running
        assert (running.running(), running.active_definitions()) == ([], [])


def _ecs(ecs: EcsStandin) -> Substrate:
    return EcsSubstrate(options(ecs, sessions=4))


async def _run(check: Check, factory: Factory, ecs: EcsStandin) -> None:
    """A sandbox that is lent may be there, before and after."""
    before = ecs.running(), ecs.active_definitions()
    await passes(check, factory, short_ttl_s=1.0)
    assert (ecs.running(), ecs.active_definitions()) == before


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance(check: Check, ecs: EcsStandin) -> None:
    await _run(check, lambda: _ecs(ecs), ecs)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def task(ecs: EcsStandin) -> AsyncIterator[Substrate]:
    async with lent(lambda: _ecs(ecs)) as one:
        yield one


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands(check: Check, ecs: EcsStandin, task: Substrate) -> None:
    await _run(check, lambda: task, ecs)
