"""Async runs of many steps: a stream is simulated as one, whatever the workers hold more of than a batch."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from costmodel import Images, Row, TrainingRun, load, project
from tests.support.cost_model.costmodel_files import S, trial, write
from tests.support.cost_model.step_cases import StepCase, a_trial, compared
from tests.support.cost_model.step_twin_trials import StepAsked

WORKERS = 64
NODES = {"nodes": 8, "pods_per_node": 8}


def case(batch: int, rollouts: int, *, images: bool = False, staleness: int | None = None) -> StepCase:
    """A stream of ``rollouts`` on 64 workers, each rollout a prompt of its own; asked of both."""
    trials = [a_trial(Random(n)) for n in range(12)]
    training_run: dict[str, Any] = {"trajectories": rollouts, "workers": WORKERS, "batch": batch, "group_size": 1}
    asked: dict[str, Any] = {"trials": trials, "rollouts": rollouts, "workers": WORKERS, "batch": batch, "group": 1}
    training_run |= {"policy": "async", "run_sd": 0.0, "train_s": 0.05, "staleness": staleness}
    asked |= {"policy": "async", "train_s": 0.05, "staleness": staleness}
    if images:
        sizes = (1.0, 2.0, 4.0)
        training_run |= NODES | {"images": Images.of(sizes), "pull_gb_s": 0.5}
        asked |= {"nodes": 8, "pods": 8, "images": sizes, "pull_gb_s": 0.5}
    return StepCase(("stream",), TrainingRun(**training_run), StepAsked(**asked))


@pytest.mark.slow
@pytest.mark.parametrize(
    "stream",
    [
        case(64, 64 * 40),
        case(4, 4 * 240),
        case(1, 1_000),
        case(4, 4 * 240, images=True),
        case(16, 16 * 120, staleness=2),
    ],
    ids=["64 on 64", "64 on 4", "64 on 1", "images", "staleness"],
)
def test_a_long_stream_is_told_as_its_twin_tells_it(stream: StepCase, tmp_path: Path) -> None:
    """The drain of what is simulated, times the rest of the run, was up to twelve times too long."""
    for one in compared(stream, tmp_path, 8):
        assert one.inside or abs(one.model - one.twin) < 0.02 * one.twin, str(one)


def test_one_more_batch_is_little_more_time(tmp_path: Path) -> None:
    rng = Random(1)
    trials = [trial(n, create=round(rng.uniform(0.2, 1) * S), runs=[S] * 3) for n in range(20)]
    recording = load(write(tmp_path / "stream.msgpack", trials))
    stream = {"workers": 64, "batch": 4, "group_size": 4, "policy": "async", "run_sd": 0.0, **NODES}
    images = {"images": Images.of((1.0, 2.0, 4.0, 8.0)), "pull_gb_s": 0.4}
    walls = [
        row_of(recording, TrainingRun(trajectories=count, **stream, **images)).wall_clock_hours
        for count in (64, 68, 256)
    ]
    few, more, many = (wall.value for wall in walls if wall is not None)
    assert few <= more < 1.1 * few
    assert more < many < 4 * few


def test_the_attribution_of_a_run_has_the_wall_clock_of_its_row(tmp_path: Path) -> None:
    rng = Random(2)
    trials = [trial(n, create=round(rng.lognormvariate(0, 0.6) * S), runs=[S] * 3) for n in range(40)]
    recording = load(write(tmp_path / "plain.msgpack", trials))
    gpus = {"gpus": 8, "gpu_usd_hour": 2.0, "train_s": 1.0}
    for more in ({"policy": "async"}, {}):
        row = row_of(recording, TrainingRun(trajectories=2_048, workers=64, batch=16, **gpus, **more))
        found, wall = row.attribution, row.wall_clock_hours
        assert found.run.step_s.value * found.steps / 3600 == pytest.approx(wall.value)
        assert found.run.worker_hours.value == pytest.approx(row.worker_hours and row.worker_hours.value)
        assert found.run.usd.value == pytest.approx(wall.value * 16)
        assert found.waiting.wall_clock_hours == pytest.approx(wall.value)
        parts = (
            found.waiting.generation_gpu_hours or 0,
            found.waiting.commands_gpu_hours,
            found.waiting.stalled_gpu_hours,
        )
        assert sum(part or 0.0 for part in parts) == pytest.approx(found.waiting.waiting_gpu_hours)


def row_of(recording: Any, training_run: TrainingRun) -> Row:
    (row,) = project([recording], training_run, effort=0.02)
    return row
