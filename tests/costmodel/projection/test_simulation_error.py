"""What is simulated of a run in steps: until its own error is small, with random numbers that all rows share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from costmodel import Alternatives, Images, Recording, Row, behind, load, pools, project, rows_of
from costmodel.analysis.decision import Side, decide_between
from costmodel.attribution import replications
from costmodel.training.run import Precision, Think, TrainingRun
from tests.support.cost_model.costmodel_files import S, cell, trial, write

LAB: dict[str, Any] = {
    "trajectories": 16_000,
    "workers": 32,
    "prompts": 4,
    "group_size": 4,
    "gpus": 8,
    "gpu_usd_hour": 2.5,
    "train_s": 20.0,
    "think": Think(2 * S, 1.0),
    "think_correlation": 0.3,
    "failure_rate": 0.05,
}
"""1,000 steps of 16 rollouts whose think time has a heavy tail."""
NODES: dict[str, Any] = {
    "nodes": 8,
    "pods_per_node": 4,
    "node_usd_hour": 1.0,
    "images": Images.between(1, 4, 40),
    "pull_gb_s": 0.5,
    "node_disk_gib": 20.0,
}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Two places that run the same commands as long; one of them creates and dispatches faster."""
    rng = Random(3)
    trials = []
    for place, speed in enumerate((1.0, 0.1)):
        for n in range(160):  # enough to bound the slowest rollouts of a step
            create, *own = [round(rng.lognormvariate(-1, 0.3) * speed * S) for _ in range(4)]
            times = {"create": 2 * create, "actions": [S + took for took in own], "runs": [S] * 3, "cleanup": S}
            trials.append(trial(n + 200 * place, cell=place, **times))
    path = tmp_path_factory.mktemp("lab") / "lab.msgpack"
    return load(write(path, trials, cell(0), cell(1, substrate="local")))


def rows(recording: Recording, *substrates: str, effort: float = 0.1, **asked: Any) -> list[Row]:
    wanted = lambda identity: not substrates or identity.substrate in substrates  # noqa: E731
    return project([recording], TrainingRun(**LAB | asked), effort=effort, wanted=wanted)


@pytest.mark.slow
def test_ten_seeds_give_one_answer(recording: Recording) -> None:
    """With 3 of 1,000 steps simulated, one seed's value was outside of another's 95 % interval in every third case."""
    asked = [{"precision": Precision(seed=seed)} | NODES for seed in range(10)]
    found = [rows(recording, "docker", effort=0.02, **each)[0].attribution for each in asked]
    for amounts in zip(*([one.run.usd, one.sandbox.usd, one.causes["failures"].usd] for one in found), strict=True):
        outside = sum(not one.low <= other.value <= one.high for one in amounts for other in amounts)
        assert outside <= 0.17 * 90  # of two independent values, if an interval were simulation error alone
    assert max(one.sandbox.usd.value for one in found) < 1.15 * min(one.sandbox.usd.value for one in found)


def test_it_is_simulated_until_its_own_error_is_small(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = behind([recording], TrainingRun(**LAB | {"run_sd": 0.0}), None, ())[:1]
    found = rows_of(inputs, effort=0.2)[0].attribution
    assert found.error_s < 0.08 * found.run.step_s.value  # 99.7 % are within that, 95 % within 5 %
    assert found.simulated_steps > 3
    assert found.waiting.commands_gpu_hours == pytest.approx(1000 * 8 * 3 / 3600)  # not simulated in every round
    monkeypatch.setattr(replications, "BUDGET", 1)
    less = rows(recording, "docker", effort=0.02, run_sd=0.0)[0].attribution
    assert less.simulated_steps < found.simulated_steps
    widths = [amount.high - amount.low for amount in (less.sandbox.usd, found.sandbox.usd)]
    assert widths[0] > widths[1], "what is not simulated is in the interval"


def test_a_row_does_not_depend_on_the_others_that_are_shown(recording: Recording) -> None:
    both = rows(recording, effort=0.004)
    assert both == [*rows(recording, "docker", effort=0.004), *rows(recording, "local", effort=0.004)]


def test_rows_differ_by_what_their_sandboxes_cost(recording: Recording) -> None:
    """Both wait as long for the model: its time is not drawn anew for each row, nor for one with nodes."""
    light = {"effort": 0.02, "think": Think(2 * S, 0.4)}  # both are simulated until their error is small
    [docker], [local] = rows(recording, "docker", **NODES | light), rows(recording, "local", **light)
    ideal = [row.attribution.run.step_s.value - row.attribution.sandbox.step_s.value for row in (docker, local)]
    assert ideal[0] == pytest.approx(ideal[1], rel=1e-9)


def test_clean_up_costs_nothing_where_nobody_waits_for_it(tmp_path: Path) -> None:
    """A retry found the pod, and the image, that its own failure had freed at that moment, without clean-up only."""
    seconds = []
    asked = TrainingRun(**LAB | NODES | {"nodes": 16, "failure_rate": 0.2, "run_sd": 0.0})
    for cleanup in (0, 1, S // 2):
        trials = [trial(n, create=(1 + n % 3) * S, runs=[S] * 3, cleanup=cleanup) for n in range(12)]
        (row,) = project([load(write(tmp_path / f"{cleanup}.msgpack", trials))], asked, effort=0.02)
        share = row.attribution.causes["cleanup"]
        seconds.append((row.attribution.run.step_s.value, share.step_s.value))
    assert seconds[0] == seconds[1]
    assert seconds[1][1] == 0
    assert abs(seconds[2][1]) < 0.01 * seconds[2][0]


def test_the_headline_of_a_decision_is_the_difference_of_its_table(recording: Recording) -> None:
    sides = []
    for place, pool in zip(rows(recording, effort=0.02), pools([recording]), strict=True):
        training_run = TrainingRun(**LAB | {"run_sd": 0.0})
        sides.append(Side(row=place, inputs=Alternatives(pool, training_run, None)))
    found = decide_between(sides[0], sides[1], effort=0.05)
    assert found.saving.value == pytest.approx(found.start_bill.whole.value - found.goal_bill.whole.value)
    less = found.start_bill.sandbox.value - found.goal_bill.sandbox.value
    assert found.saving.value == pytest.approx(less, rel=0.02), "an ideal sandbox takes as long at both"
    causes = [share for share in found.goal.row.attribution.causes.values() if share is not None]
    parts = sum(share.usd.value for share in causes if share.usd is not None)
    together = found.goal.row.attribution.interaction.usd
    assert parts + together.value == pytest.approx(found.goal_bill.sandbox.value)
    again = decide_between(sides[0], replace(sides[0], row=replace(sides[0].row, label="the same")), effort=0.05)
    assert again.saving == (0.0, 0.0, 0.0)
