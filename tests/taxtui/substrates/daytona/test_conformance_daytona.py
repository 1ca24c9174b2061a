"""The shipped suite against the stand-in, in both modes: Daytona."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.lent import OWNING, SHARING, lending, lent, passes
from tests.support.standins.daytona_standin import KEY, DaytonaStandin

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module", autouse=True)
def _key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAYTONA_API_KEY", KEY)
        yield


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance(check: Check) -> None:
    async with DaytonaStandin() as standin:
        if check.name == "deadline":
            standin.minute_s = 2.0  # the shortest life that Daytona grants is a minute
        await passes(check, lambda: DaytonaSubstrate(DaytonaOptions(api_url=standin.url)), short_ttl_s=2.0)
        assert standin.left() == (0, 0)


@contextlib.asynccontextmanager
async def _lent() -> AsyncIterator[Substrate]:
    async with DaytonaStandin() as standin:
        async with lent(lambda: DaytonaSubstrate(DaytonaOptions(api_url=standin.url))) as one:
            yield one
        assert standin.left() == (0, 0)


sandbox = lending(_lent)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands(check: Check, sandbox: Substrate) -> None:
    await passes(check, lambda: sandbox, short_ttl_s=2.0)
