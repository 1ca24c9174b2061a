"""Places that are each asked their own."""

from __future__ import annotations

import pytest

from costmodel import Precision, Recording, TrainingRun, load, project
from costmodel.analysis.project import SubstrateRun, project_per_substrate
from tests.support.cost_model.costmodel_files import S, cell, trial, write

COARSE = Precision(tolerance=0.2, effort=0.05)
HERE = TrainingRun(trajectories=100, workers=4, batch=20, precision=COARSE)
THERE = TrainingRun(trajectories=100, workers=4, batch=20, precision=COARSE, train_s=30.0)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    cells = cell(0), cell(1, substrate="local"), cell(2, substrate="local", tier="T1", tier_digest="d1")
    trials = [trial(n, actions=(S + n,) * 3, cell=n % 3) for n in range(30)]
    found = load(write(tmp_path_factory.mktemp("places") / "run.msgpack", trials, *cells))
    assert isinstance(found, Recording)
    return found


def test_each_place_is_asked_its_own_and_the_last_one_is_for_all_others(recording: Recording) -> None:
    places = [SubstrateRun("local", THERE, None), SubstrateRun("", HERE, None)]
    rows = project_per_substrate([recording], places)
    alone = {
        spec: project([recording], training_run, wanted=lambda identity, spec=spec: identity.substrate == spec)
        for spec, training_run in (("local", THERE), ("docker", HERE))
    }
    assert rows == [*alone["local"], *alone["docker"]]
    assert [row.identity.substrate for row in rows] == ["local", "local", "docker"]
    few = project_per_substrate([recording], places, wanted=lambda identity: identity.tier == "T1")
    assert [(row.identity.substrate, row.identity.tier) for row in few] == [("local", "T1")]


def test_all_are_compared_with_the_baseline_of_the_last(recording: Recording) -> None:
    common = TrainingRun(trajectories=100, workers=4, batch=20, precision=COARSE, baseline="docker")
    rows = project_per_substrate([recording], [SubstrateRun("local", THERE, None), SubstrateRun("", common, None)])
    [local] = [row for row in rows if row.identity.substrate == "local" and row.identity.tier == "T2"]
    assert local.versus.label == "docker"
