"""The shipped suite against the stand-in, in both modes: Daytona."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from taxtui.substrates.daytona.options import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.daytona_standin import KEY, DaytonaStandin


@pytest.fixture
async def standin(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DaytonaStandin]:
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    async with DaytonaStandin() as server:
        yield server


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_conformance(check: Check, standin: DaytonaStandin) -> None:
    if str(check) == "deadline":
        standin.minute_s = 2.0  # the shortest life that Daytona grants is a minute
    options = DaytonaOptions(api_url=standin.url)
    try:
        await check(lambda: DaytonaSubstrate(options), short_ttl_s=2.0)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    assert standin.left() == (0, 0)
