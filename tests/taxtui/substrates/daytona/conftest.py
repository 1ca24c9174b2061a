"""The emulator for tests of Daytona, a substrate that uses the emulator, and a ready sandbox of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.sandbox import DaytonaSandbox
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.sandboxes import ready
from tests.support.standins.daytona_standin import KEY, DaytonaStandin


@pytest.fixture
async def standin(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DaytonaStandin]:
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    async with DaytonaStandin() as server:
        yield server


@pytest.fixture
async def substrate(standin: DaytonaStandin) -> AsyncIterator[DaytonaSubstrate]:
    async with DaytonaSubstrate(DaytonaOptions(api_url=standin.url)) as connected:
        yield connected


@pytest.fixture
async def box(substrate: DaytonaSubstrate) -> AsyncIterator[DaytonaSandbox]:
    sandbox = await ready(substrate)
    yield sandbox
    await sandbox.destroy()
