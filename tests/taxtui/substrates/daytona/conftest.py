"""The emulator for tests of Daytona."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.standins.daytona_standin import KEY, DaytonaStandin


@pytest.fixture
async def standin(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DaytonaStandin]:
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    async with DaytonaStandin() as server:
        yield server
