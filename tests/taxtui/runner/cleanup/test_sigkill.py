"""The runner is killed at random moments: the recording stays readable and nothing of the run is left."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import docker
import pytest

from costmodel.recording.events import TrialStarted
from tests.support.command_line import Home, events, run_id
from tests.support.forked_run import ForkedRun
from tests.support.standins.private_sshd import ssh_box
from tests.support.waiting import block_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.processes,
]  # they share the process that runs are forked from

SEED: Final = 20_260_101
CREATE_TIMEOUT_S: Final = 5
TRIAL_S: Final = {"docker": 1.0}
"""What a kill is spread over, longer than several trials take; so is the watchdog's start."""
SPREAD_S: Final = 0.5  # elsewhere
EARLY: Final = 0.1  # of the kills, at any moment from the start of the process on
STARTING: Final = 0.3  # of the kills, once the recording is there; all others once a trial has begun
SCENARIO: Final = f"""
create_timeout = "{CREATE_TIMEOUT_S}s"
[[cells]]
substrates = ["SUBSTRATE"]
tiers = ["T0"]
actions = [10]
modes = ["session"]
concurrency = 2
trials = 100000
"""
Listing = Callable[[], list[str]]
"""The run of everything that is out there now."""


def in_trials(path: Path) -> bool:
    """Whether a recording says that a trial has begun; before its first frame nothing has been asked for."""
    return path.exists() and path.stat().st_size > 0 and any(isinstance(event, TrialStarted) for event in events(path))


def kill_at_random(home: Home, substrate: str, listing: Listing, part: int = 0, kills: int = 10) -> None:
    """Kill ``kills`` runs, each at a moment that the seed decides; nothing is left once their watchdogs have ended.

    Only those that may be struck while they start are started from nothing.
    """
    source = random.Random(f"{SEED}:{substrate}:{part}")
    scenario = home.cwd / "scenario.toml"
    scenario.write_text(SCENARIO.replace("SUBSTRATE", substrate))
    killed = set()
    for number in range(kills):
        path = home.cwd / f"{number}.msgpack"
        words = ("run", str(scenario), "--progress", "none", "-o", str(path))
        early = number < EARLY * kills
        process = home.start(*words) if early else ForkedRun(home, *words)
        if number >= (EARLY + STARTING) * kills:
            block_until(lambda path=path: in_trials(path), "the first trial")
        elif not early:
            block_until(path.exists, "the recording")
        time.sleep(source.uniform(0, TRIAL_S.get(substrate, SPREAD_S)))
        assert process.poll() is None, "it was to be killed while it runs"
        process.kill()
        process.wait()
        if in_trials(path):
            killed.add(run_id(path))
            assert f"{run_id(path)}.json" in home.ledger(), "a create under way may still bring something"
    block_until(lambda: not home.processes(), "the watchdogs have ended")
    assert len(killed) >= kills - math.ceil((EARLY + STARTING) * kills), "most were killed in the middle of trials"
    assert not killed & set(listing())
    assert home.ledger() == []


@pytest.mark.docker
@pytest.mark.parametrize("part", range(2))  # ten each; `make chaos` has fifty
def test_ten_kills_with_docker(home: Home, part: int) -> None:
    with contextlib.closing(docker.APIClient()) as client:

        def listing() -> list[str]:
            rows = client.containers(all=True, filters={"label": ["taxtui.run"]})
            return [row["Labels"]["taxtui.run"] for row in rows]

        kill_at_random(home, "docker", listing, part)


def runs_of(names: Iterable[str]) -> list[str]:
    """The runs that sandboxes belong to, by their names; a run's id has a hyphen itself."""
    return [name.removeprefix("taxtui-").rpartition("-")[0] for name in names]


@pytest.mark.parametrize("isolation", ["plain", pytest.param("bwrap", marks=pytest.mark.bwrap)])
def test_ten_kills_with_local(home: Home, isolation: str) -> None:
    kill_at_random(home, f"local:isolation={isolation}", lambda: runs_of(home.sandboxes()))
    assert home.sandboxes() == []


@pytest.mark.sshd
def test_ten_kills_with_ssh(home: Home) -> None:
    with ssh_box() as box:
        kill_at_random(home, box.named(), lambda: runs_of(box.left()))
        assert box.left() == []


@pytest.mark.docker
def test_a_kill_while_a_container_is_suspended(home: Home) -> None:
    """The container's own deadline is frozen with it: the watchdog has to remove it, and the copies of its trial."""
    path = home.cwd / "suspended.msgpack"
    life = ("--think", "600s", "--set", "lifecycle=suspend:1ms", "--set", f"create_timeout={CREATE_TIMEOUT_S}s")
    process = home.start("run", "-s", "docker", "-t", "T0", "-n", "2", "--mode", "session", *life, "-o", str(path))
    block_until(lambda: in_trials(path), "the first trial")
    run = run_id(path)
    with contextlib.closing(docker.APIClient()) as client:
        label = f"taxtui.run={run}"

        def containers(**filters: str) -> list[str]:
            return [row["Id"] for row in client.containers(all=True, filters={"label": [label], **filters})]

        block_until(lambda: containers(status="paused"), "a suspended container")
        [container] = containers()
        image = client.commit(container, repository=f"taxtui-{run}-0.snapshot")["Id"]
        process.kill()
        process.wait()
        block_until(lambda: not home.processes(), "the watchdog has ended")
        assert containers() == []
        assert image not in [row["Id"] for row in client.images(all=True)]
    assert home.ledger() == []
