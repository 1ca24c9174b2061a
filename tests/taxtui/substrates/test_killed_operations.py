"""``taxtui clean`` after SIGKILL of docker's suspend, resume, snapshot, fork, build and reset."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.support.chaos.processes import TIER
from tests.support.command_line import Home, containers
from tests.support.waiting import block_until

pytestmark = pytest.mark.processes

SCENARIO: Final = """
lifecycle = "suspend:20ms,snapshot,build"
create_timeout = "60s"
[[cells]]
substrates = ["docker"]
tiers = ["tier.toml"]
actions = [2]
modes = ["exec"]
acquire = "{acquire}"
think = "60ms"
concurrency = 3
trials = 60
warmup = 0
"""
SPREAD_S: Final = 5.0
SETTLES_S: Final = 2.0
"""The daemon completes accepted requests of a dead client within this time."""


def leftovers(home: Home, run: str) -> list[str]:
    """Processes, containers and images of a run."""
    images = ["docker", "images", "--all", "--quiet", f"--filter=label=taxtui.run={run}"]
    return [*home.processes().values(), *containers(run), *subprocess.check_output(images, text=True).split()]


def measuring(home: Home) -> list[int]:
    """The runner and its watchdog, without the sandboxes' processes."""
    python = Path(sys.executable).resolve()
    pids = []
    for pid in home.processes():
        with contextlib.suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/exe").resolve() == python:
                pids.append(pid)
    return pids


def strike(home: Home, source: Random) -> list[str]:
    """Kill a measurement at a random moment; return what is left after ``taxtui clean``."""
    run = f"killed-{os.getpid()}-{source.randrange(10**9)}"
    recording = home.cwd / f"{run}.msgpack"
    (home.cwd / "tier.toml").write_text(TIER)
    (home.cwd / "scenario.toml").write_text(SCENARIO.format(acquire=source.choice(("create", "reset"))))
    process = home.start("run", "scenario.toml", "--progress", "none", "-o", str(recording), "--run-id", run)
    block_until(lambda: containers(run) or process.poll() is not None, "a sandbox")
    time.sleep(source.uniform(0, SPREAD_S))
    while pids := measuring(home):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.poll()
    process.communicate()
    time.sleep(SETTLES_S)
    cleaned = home.run("clean", "-s", "docker", "--run", run, "--force")
    return [*leftovers(home, run), *([f"exit {cleaned.code}: {cleaned.err}"] if cleaned.code else [])]


@pytest.mark.slow
@pytest.mark.docker
def test_clean_removes_everything_of_a_killed_operation(home: Home) -> None:
    for seed in range(2):
        assert strike(home, Random(seed)) == []
