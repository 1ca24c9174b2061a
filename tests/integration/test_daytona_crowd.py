"""200 trials at once from one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from taxtui.substrates.daytona.options import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from tests.support.crowd import crowd
from tests.support.daytona_standin import KEY
from tests.support.standin_process import serving


@pytest.mark.slow
async def test_two_hundred_trials_at_once_all_succeed_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    async with serving("tests.support.daytona_standin") as url:
        options = DaytonaOptions(api_url=url)
        got = await crowd(lambda ref: DaytonaSubstrate(options), tmp_path, 200, actions=2)
        assert (got.trials, got.failures) == (200 + 1, [])  # and one warm-up
        async with DaytonaSubstrate(options) as substrate:
            assert await substrate.find() == []
