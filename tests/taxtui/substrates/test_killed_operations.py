"""``taxtui clean`` after SIGKILL of a measurement during suspend, resume, snapshot, fork, build and reset."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.support.chaos import places
from tests.support.command_line import Home, containers
from tests.support.waiting import block_until

pytestmark = pytest.mark.processes

OPERATIONS: Final = {
    "local:isolation=plain": "",
    "local:isolation=bwrap": "",
    "docker": "suspend:20ms,snapshot,build",
}
SCENARIO: Final = """
lifecycle = "{operations}"
create_timeout = "60s"
[[cells]]
substrates = ["{place}"]
tiers = ["tier.toml"]
actions = [2]
modes = ["exec"]
acquire = "{acquire}"
think = "60ms"
concurrency = 3
trials = 60
warmup = 0
"""
TIER: Final = """
name = "C"
title = "leaves processes behind"
requires = []
[[cycle]]
name = "one"
run = "(sleep 300 & setsid sleep 300 &) >/dev/null 2>&1 </dev/null; echo done"
expect_stdout = "done"
"""
SPREAD_S: Final = 5.0
SETTLES_S: Final = 2.0
"""The daemon completes accepted requests of a dead client within this time."""


def leftovers(home: Home, place: str, run: str) -> list[str]:
    """Processes, folders, cgroups, mounts, containers and images of a run."""
    found = [*home.processes().values(), *home.sandboxes(), *places.of_the_kernel(run)]
    if place == "docker":
        images = ["docker", "images", "--all", "--quiet", f"--filter=label=taxtui.run={run}"]
        found += containers(run) + subprocess.check_output(images, text=True).split()
    return found


def measuring(home: Home) -> list[int]:
    """The runner and its watchdog, without the sandboxes' processes."""
    python = Path(sys.executable).resolve()
    pids = []
    for pid in home.processes():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/exe").resolve() == python:
                pids.append(pid)
    return pids


def strike(home: Home, place: str, source: Random) -> tuple[str, list[str], list[str]]:
    """Kill a measurement at a random moment; return the end, and what is left before and after ``taxtui clean``."""
    run = f"killed-{os.getpid()}-{source.randrange(10**9)}"
    recording = home.cwd / f"{run}.msgpack"
    acquire = source.choice(("create", "reset"))
    (home.cwd / "tier.toml").write_text(TIER)
    scenario = SCENARIO.format(operations=OPERATIONS[place], place=place, acquire=acquire)
    (home.cwd / "scenario.toml").write_text(scenario)
    process = home.start("run", "scenario.toml", "--progress", "none", "-o", str(recording), "--run-id", run)
    sandboxes = partial(containers, run) if place == "docker" else home.sandboxes
    block_until(lambda: sandboxes() or process.poll() is not None, "a sandbox")
    time.sleep(source.uniform(0, SPREAD_S))
    state = "killed" if process.poll() is None else f"too late: exit {process.returncode}"
    while pids := measuring(home):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.poll()
    process.communicate()
    time.sleep(SETTLES_S if place == "docker" else 0)
    before = leftovers(home, place, run)
    cleaned = home.run("clean", "-s", place, "--run", run, "--force")
    after = leftovers(home, place, run)
    if cleaned.code:
        after.append(f"exit {cleaned.code}: {cleaned.err}")
    return f"{acquire}: {state}", before, after


@pytest.mark.slow
@pytest.mark.parametrize("place", OPERATIONS)
def test_clean_removes_everything_of_a_killed_operation(place: str, home: Home) -> None:
    if why := places.complaint(place):
        pytest.skip(why)
    for seed in range(2):
        _, _, after = strike(home, place, Random(seed))
        assert after == []
