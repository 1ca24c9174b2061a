"""Two places in the same random worlds: what both share cancels, and runs that are not the same are not paired."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from costmodel import Images, Recording, Think, TrainingRun, load
from costmodel.attribution.paired_comparison import Shared, run_difference
from costmodel.workload.pool import Pool, pools
from costmodel.workload.rescaling import Alternatives
from tests.support.cost_model.costmodel_files import S, cell, trial, write

DEMAND = TrainingRun(
    trajectories=64, workers=8, batch=8, group_size=4, gpus=2, gpu_usd_hour=3600.0, think=Think(5 * S, 0.5), run_sd=0.0
)
"""8 steps; two GPUs cost $2 a second."""
NODES = replace(DEMAND, nodes=2, pods_per_node=4, images=Images.between(2, 8, 50), pull_gb_s=1.0)


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Pool]:
    """One creates 10 s longer than the other, else they are alike."""
    trials = [trial(n, create=2 * S, runs=[S // 2] * 3) for n in range(8)]
    trials += [trial(n, cell=1, create=12 * S, runs=[S // 2] * 3) for n in range(10, 18)]
    return list(
        pools(
            [load(write(tmp_path_factory.mktemp("pairs") / "r.msgpack", trials, cell(0), cell(1, substrate="local")))]
        )
    )


def test_what_both_share_cancels(cells: list[Pool]) -> None:
    same = run_difference(Alternatives(cells[0], DEMAND, None), Alternatives(cells[0], DEMAND, None))
    assert same.usd == (0.0, 0.0, 0.0)
    slower = run_difference(Alternatives(cells[1], DEMAND, None), Alternatives(cells[0], DEMAND, None))
    assert slower.usd.value == pytest.approx(8 * 10 * 2, rel=1e-6)  # steps, s, $ a second: think times are the same
    assert slower.usd.low == pytest.approx(slower.usd.value)
    assert slower.worker_hours.value == pytest.approx(64 * 10 / 3600, rel=1e-6)


def test_a_place_with_nodes_is_paired_with_one_without(cells: list[Pool]) -> None:
    one, other = Alternatives(cells[0], NODES, None), Alternatives(cells[0], DEMAND, None)
    pulls, back = run_difference(one, other), run_difference(other, one)
    assert pulls.usd.value > 0
    assert back.usd.value == pytest.approx(-pulls.usd.value)
    shared: Shared = {}
    assert run_difference(one, other, shared=shared) == pulls
    assert run_difference(other, one, shared=shared) == back, "what both have is simulated once, and is the same"


def test_other_steps_or_other_nodes_are_not_paired(cells: list[Pool]) -> None:
    run = Alternatives(cells[0], DEMAND, None)
    assert run_difference(run, Alternatives(cells[0], replace(DEMAND, trajectories=32), None)) is None
    nodes = Alternatives(cells[0], NODES, None)
    assert run_difference(nodes, Alternatives(cells[0], replace(NODES, nodes=3), None)) is None


def test_other_runs_are_resampled_each_for_themselves(cells: list[Pool], tmp_path: Path) -> None:
    trials = [trial(n, create=(2 + n % 5) * S, runs=[S // 2] * 3) for n in range(20)]
    files = [write(tmp_path / f"{name}.msgpack", trials, cell(0), run_id=name) for name in ("one", "two")]
    found = [load(file) for file in files]
    one, two = (next(iter(pools([file]))) for file in found if isinstance(file, Recording))
    apart_ = run_difference(Alternatives(one, DEMAND, None), Alternatives(two, DEMAND, None))
    assert apart_.usd.value == 0  # the same trials, drawn alike
    assert apart_.usd.low < 0  # but who knows whether the runs were
