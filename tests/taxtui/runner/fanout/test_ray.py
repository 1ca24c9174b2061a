"""Runs whose workers are on the nodes of a real Ray cluster: two on this machine, of which one is killed at last."""

from __future__ import annotations

import bisect
import contextlib
import math
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from costmodel.recording.events import Actions, Notice, TrialEnded, TrialStarted
from tests.support import paced_fake, waiting
from tests.support.command_line import Home, ended, events, last, tier
from tests.support.standins.ray_cluster import TwoNodes
from tests.support.worker_kills import WORKERS, whole
from tests.support.worker_kills import scenario as killed_scenario

pytestmark = [
    pytest.mark.slow,
    pytest.mark.processes,
]  # they share the cluster, and the last takes a node of it away
RAY = ("--ray", "auto")
UNLIKELY = 1.95
"""The Kolmogorov–Smirnov statistic, times √(n·m ÷ (n + m)), is above it once in a thousand samples of one law."""


class Nodes:
    """A cluster, what lies on its nodes, and the machine that runs are started from."""

    def __init__(self, folder: Path) -> None:
        fake = paced_fake.environment(folder / "fake")
        self.there = Home(folder / "there", **fake)
        self.cluster = TwoNodes(self.there.env, cores=2)
        self.here = Home(folder / "here", **fake, **self.cluster.environment)

    def close(self) -> None:
        self.here.close()
        self.cluster.close()
        assert self.cluster.processes() == {}

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


def paced(home: Home, name: str, *more: str) -> list[int]:
    """How long the commands of a run took, each of whose pace is decided by its trial's number."""
    path = home.cwd / f"{name}.msgpack"
    words = ("-t", str(tier(home.cwd / f"{name}.toml", "true")), "-n", "5", "--trials", "60", "--warmup", "1")
    told = home.run(
        *("run", "-s", f"{paced_fake.NAME}:median_s=0.2", *words, "--concurrency", "30", "--mode", "exec"),
        *("--set", "bracket=false", "-o", str(path), "--progress", "none", *more),
    )
    assert told.code == 0, told
    warm = {event.trial for event in events(path) if isinstance(event, TrialStarted) and event.warm_up}
    rows = [event for event in events(path) if isinstance(event, Actions) and event.trial not in warm]
    return sorted(took for row in rows if row.step == "action" for took in row.duration_ns)


def apart(one: list[int], other: list[int]) -> float:
    """The two-sample Kolmogorov–Smirnov statistic of sorted samples, scaled by their sizes."""

    def below(sample: list[int], x: int) -> float:
        return bisect.bisect_right(sample, x) / len(sample)

    gaps = (abs(below(one, x) - below(other, x)) for x in one + other)
    return max(gaps) * math.sqrt(len(one) * len(other) / (len(one) + len(other)))


def test_one_process_two_workers_and_two_nodes_find_the_same_law(nodes: Nodes) -> None:
    alone = paced(nodes.here, "alone")
    pair = paced(nodes.here, "pair", "--processes", "2")
    spread = paced(nodes.here, "spread", "--processes", "2", "--ray", nodes.cluster.address)
    assert len(alone) == len(pair) == len(spread) == 300
    assert max(apart(alone, pair), apart(alone, spread), apart(pair, spread)) < UNLIKELY
    assert apart(alone, [2 * took for took in alone]) > UNLIKELY, "it would tell twice the time"
    nodes.assert_nothing_left()


@pytest.mark.parametrize("blow", [signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_the_run_ends_it_on_every_node(nodes: Nodes, blow: signal.Signals) -> None:
    path, slow = nodes.here.cwd / f"{blow.name}.msgpack", nodes.here.cwd / "slow.toml"
    tier(slow, "touch started; sleep 300")
    scenario = nodes.here.cwd / "ended.toml"
    scenario.write_text(
        'create_timeout = "2s"\nworkers = 2\n[[cells]]\nsubstrates = ["local:isolation=plain"]\ntiers = ["slow.toml"]\n'
        'actions = [1]\ntrials = 8\nconcurrency = 2\nwarmup = 0\nmodes = ["exec"]\n'
    )
    process = nodes.here.start("run", str(scenario), *RAY, "-o", str(path), "--progress", "none")
    waiting.block_until(lambda: len(nodes.there.running()) == 2, "a command runs on each node")
    process.send_signal(blow)
    told = ended(process)
    if blow is signal.SIGTERM:
        assert (told.code, last(path).outcome) == (130, "interrupted"), told
    nodes.assert_nothing_left()


def test_a_node_that_is_killed_costs_no_trial(nodes: Nodes) -> None:
    path = nodes.here.cwd / "killed.msgpack"
    text = killed_scenario(nodes.here, "local:isolation=plain", actions=10, think="100ms")
    process = nodes.here.start("run", str(text), *RAY, "-o", str(path), "--progress", "none")

    def begun() -> bool:
        assert process.poll() is None, ended(process)
        if not path.exists() or not path.stat().st_size:
            return False
        return sum(isinstance(event, TrialEnded) for event in events(path)) >= 5

    waiting.block_until(begun, "some trials")
    nodes.cluster.kill_node()
    told = ended(process)
    assert told.code == 0, told
    whole(path, actions=10)
    notices = [event.text for event in events(path) if isinstance(event, Notice)]
    assert sum("was lost" in text for text in notices) in range(1, WORKERS), notices
    nodes.assert_nothing_left()
