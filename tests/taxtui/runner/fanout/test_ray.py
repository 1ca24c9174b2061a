"""Runs whose workers are on the nodes of a real Ray cluster: two on this machine, of which one is killed at last."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from costmodel.recording.events import Notice, TrialEnded
from tests.support import waiting
from tests.support.chaos.cases import doubled
from tests.support.command_line import Home, ended, events, tier
from tests.support.standins.ray_cluster import TwoNodes

pytestmark = [pytest.mark.slow, pytest.mark.processes]  # they share the cluster, and the last takes a node of it away
TRIALS = 20


class Nodes:
    """A cluster, what lies on its nodes, and the machine that runs are started from."""

    def __init__(self, folder: Path) -> None:
        self.there = Home(folder / "there")
        self.cluster = TwoNodes(self.there.env, cores=2)
        self.here = Home(folder / "here", **self.cluster.environment)

    def close(self) -> None:
        self.here.close()
        self.cluster.close()
        assert self.cluster.processes() == {}

    def start(self, path: Path, script: str) -> Popen[bytes]:
        """A run whose commands are this script, on both nodes."""
        tier(path.with_suffix(".tier.toml"), script)
        scenario = path.with_suffix(".toml")
        scenario.write_text(
            f'create_timeout = "2s"\nworkers = 2\n[[cells]]\nsubstrates = ["local:isolation=plain"]\nactions = [10]\n'
            f'tiers = ["{path.stem}.tier.toml"]\ntrials = {TRIALS}\nconcurrency = 4\nwarmup = 0\nmodes = ["exec"]\n'
        )
        return self.here.start("run", str(scenario), "--ray", "auto", "-o", str(path), "--progress", "none")

    def assert_nothing_left(self) -> None:
        """Neither a process nor a sandbox, neither there nor here."""
        waiting.block_until(lambda: not self.cluster.measuring(), "workers and their watchdogs have ended")
        waiting.block_until(lambda: not self.here.processes(), "so has what the run had here")
        assert (self.there.sandboxes(), self.there.ledger()) == ([], [])
        self.here.assert_nothing_left()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with contextlib.closing(Nodes(tmp_path_factory.mktemp("ray"))) as found:
        yield found


def test_a_killed_run_ends_on_every_node(nodes: Nodes) -> None:
    process = nodes.start(nodes.here.cwd / "ended.msgpack", "touch started; sleep 300")
    waiting.block_until(lambda: len(nodes.there.running()) == 4, "commands run on both nodes")
    process.kill()
    ended(process)
    nodes.assert_nothing_left()


def test_a_node_that_is_killed_costs_no_trial(nodes: Nodes) -> None:
    path = nodes.here.cwd / "killed.msgpack"
    process = nodes.start(path, "sleep 0.1")

    def begun() -> bool:
        assert process.poll() is None, ended(process)
        if not path.exists() or not path.stat().st_size:
            return False
        return sum(isinstance(event, TrialEnded) for event in events(path)) >= 5

    waiting.block_until(begun, "some trials")
    nodes.cluster.kill_node()
    told = ended(process)
    assert told.code == 0, told
    assert doubled(events(path), TRIALS) == []
    assert sum("was lost" in event.text for event in events(path) if isinstance(event, Notice)) == 1
    nodes.assert_nothing_left()
