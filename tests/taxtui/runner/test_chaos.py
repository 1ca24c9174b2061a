"""Thirty of the cases of ``make chaos``; it has hundreds. A failure says how it is repeated."""

from __future__ import annotations

import itertools
import os
from random import Random

import pytest

from tests.support.chaos.__main__ import STRUCK, again, tried
from tests.support.chaos.cases import cases
from tests.support.chaos.strikes import STRIKES, Victim
from tests.support.command_line import PLAIN, Home, last, tier
from tests.support.waiting import block_until, left_s

pytestmark = pytest.mark.processes

SEED = 16
PARTS, EACH = 5, 6
AT_ONCE = 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))  # side by side they take as long as the slowest
async def test_whatever_strikes_a_run_nothing_is_left_and_everything_is_said(part: int) -> None:
    every = sorted(itertools.islice(cases(STRUCK, SEED), PARTS * EACH), key=lambda case: list(STRUCK).index(case.group))
    chosen = every[part * EACH : (part + 1) * EACH]  # by their places: no part begins with every SDK and stand-in
    verdicts = await tried(chosen, AT_ONCE, lambda verdict: None)
    assert len(verdicts) == EACH
    missing = {verdict.skipped for verdict in verdicts}
    if "" not in missing and not os.environ.get("TAXTUI_REQUIRE_ALL"):
        pytest.skip("; ".join(sorted(missing)))
    assert [(again(verdict.case), verdict.problems) for verdict in verdicts if verdict.problems] == []
    assert any(verdict.ending for verdict in verdicts)


def test_a_run_whose_terminal_is_closed_is_interrupted(home: Home) -> None:
    victim = Victim(home, home.cwd / "r.msgpack", Random(1))
    slow = str(tier(home.cwd / "slow.toml", "touch started; sleep 60"))
    with STRIKES["terminal closed"](victim) as close:
        words = ("run", *PLAIN, "-t", slow, "-n", "1", "--trials", "2", "--warmup", "0", "-o", str(victim.path))
        process = home.start(*words, prefix=victim.prefix, **victim.streams)
        block_until(home.running, "a command runs")
        close()
        assert process.wait(left_s()) == 130
    assert last(victim.path).outcome == "interrupted"
    block_until(lambda: not home.processes(), "its watchdog has ended")
    home.assert_nothing_left()
