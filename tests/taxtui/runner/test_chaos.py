"""Some of the hundreds of cases of ``make chaos``, each repeated by what its failure says."""

from __future__ import annotations

import itertools
import os
import subprocess
from random import Random

import pytest

from tests.support.chaos.__main__ import STRUCK, again, tried
from tests.support.chaos.cases import Case, cases
from tests.support.chaos.strikes import KILLS, STRIKES, Victim
from tests.support.command_line import PLAIN, Home, containers, last, tier
from tests.support.waiting import block_until, left_s

pytestmark = pytest.mark.processes

SEED = 16
PARTS, EACH = 2, 8
KILLED = {"docker": 131, "local:isolation=plain": 132, "local:isolation=bwrap": 133, "ssh": 134}
"""Places and seeds."""


async def survived(chosen: list[Case], more: str = "") -> None:
    """Try the cases, and fail where something was left, hangs, or was not said."""
    verdicts = await tried(chosen, 2, lambda verdict: None)
    assert len(verdicts) == len(chosen)
    missing = {verdict.skipped for verdict in verdicts}
    if "" not in missing and not os.environ.get("TAXTUI_REQUIRE_ALL"):
        pytest.skip("; ".join(sorted(missing)))
    assert [(again(verdict.case, more), verdict.problems) for verdict in verdicts if verdict.problems] == []
    assert any(verdict.ending and not verdict.ending.startswith("too late") for verdict in verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))  # side by side they take as long as the slowest
async def test_whatever_strikes_a_run_nothing_is_left_and_everything_is_said(part: int) -> None:
    every = sorted(itertools.islice(cases(STRUCK, SEED), PARTS * EACH), key=lambda case: list(STRUCK).index(case.group))
    await survived(every[part * EACH : (part + 1) * EACH])  # by places: no part begins with every SDK and stand-in


def killings(place: str) -> list[Case]:
    return list(itertools.islice(cases({place: list(KILLS)}, KILLED[place]), 3))


def test_the_seeds_kill_everything_and_the_runner_everywhere() -> None:
    kinds = [{case.kind for case in killings(place)} for place in KILLED]
    assert set.union(*kinds) == set(KILLS)
    assert "killed: runner" in set.intersection(*kinds)


@pytest.mark.slow
@pytest.mark.parametrize("place", KILLED)
async def test_whoever_is_killed_nothing_is_left_and_no_trial_is_doubled(place: str) -> None:
    await survived(killings(place), f" --kills --place '{place}'")


@pytest.mark.docker
def test_a_kill_while_a_container_is_suspended(home: Home) -> None:
    """The container's own deadline is frozen with it: the watchdog has to remove it."""
    run = f"suspended-{os.getpid()}"
    life = ("--think", "600s", "--set", "lifecycle=suspend:1ms", "--set", "create_timeout=5s")
    process = home.start("run", "-s", "docker", "-t", "T0", "-n", "2", "--mode", "session", *life, "--run-id", run)
    paused = ["docker", "ps", "--quiet", f"--filter=label=taxtui.run={run}", "--filter=status=paused"]
    block_until(lambda: subprocess.check_output(paused), "a suspended container")
    subprocess.check_output(["docker", "commit", containers(run)[0]])  # a copy has its container's labels
    process.kill()
    process.communicate()
    block_until(lambda: not home.processes(), "the watchdog has ended")
    assert containers(run) == []
    copies = ["docker", "images", "--all", "--quiet", f"--filter=label=taxtui.run={run}"]
    assert (subprocess.check_output(copies), home.ledger()) == (b"", [])


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
