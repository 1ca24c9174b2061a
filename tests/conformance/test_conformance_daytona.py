"""The shipped suite against the stand-in, in both modes: Daytona."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check, NotApplicable
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.daytona.options import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.daytona_standin import KEY, DaytonaStandin
from tests.support.lent import OWNING, SHARING, lent


@pytest.fixture(scope="module", autouse=True)
def _key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAYTONA_API_KEY", KEY)
        yield


async def _run(check: Check, factory: Factory) -> None:
    try:
        await check(factory, short_ttl_s=2.0)
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance(check: Check) -> None:
    async with DaytonaStandin() as standin:
        if check.name == "deadline":
            standin.minute_s = 2.0  # the shortest life that Daytona grants is a minute
        await _run(check, lambda: DaytonaSubstrate(DaytonaOptions(api_url=standin.url)))
        assert standin.left() == (0, 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Substrate]:
    async with DaytonaStandin() as standin:
        async with lent(lambda: DaytonaSubstrate(DaytonaOptions(api_url=standin.url))) as one:
            yield one
        assert standin.left() == (0, 0)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands(check: Check, sandbox: Substrate) -> None:
    await _run(check, lambda: sandbox)
