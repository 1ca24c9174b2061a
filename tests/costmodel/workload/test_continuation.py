"""Actions beyond the recorded ones: from the later cycles, never from the first alone, and with the doubt said."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import Recording, TrainingRun, load, project
from costmodel.workload.attempts import FIRST_CYCLE, continued, extrapolation_error, later_change
from tests.studies.study_length import held_out
from tests.support.cost_model.costmodel_files import S, cell, trial, write


def recorded(folder: Path, durations: list[int], count: int = 4) -> Recording:
    trials = [trial(n, actions=[ns + n for ns in durations]) for n in range(count)]
    return load(write(folder / "a.msgpack", trials, cell(0, actions=len(durations), cycle=2)))


def test_the_later_half_of_the_cycles_goes_on_at_each_place_and_the_first_never() -> None:
    column = [90, 80, 5, 6, 1, 2, 3, 6]  # four cycles of two
    assert continued(column, 5, 2) == (2 * (1 + 2 + 3 + 6) + 1 + 3) // 2
    assert continued(column, 0, 2) == 0
    assert continued([90, 80, 5, 6], 2, 2) == 11
    assert continued([90, 5, 6], 4, 2) == 22  # it is at the second place of its cycle
    assert continued([1, 2, 4], 3, 10) == 7
    assert continued([], 3, 2) == 0


def test_the_first_cycle_is_not_repeated(tmp_path: Path) -> None:
    one = recorded(tmp_path, [9 * S, 9 * S, S, S, S, S])
    (row,) = project([one], TrainingRun(trajectories=3600, workers=1, actions=12))
    assert row.worker_hours.value == pytest.approx(3 + 22 + 6, rel=1e-6)
    assert "beyond_measured_length" in row.flags
    assert "first_cycle_only" not in row.flags


def test_from_one_cycle_it_is_said_and_the_interval_allows_later_ones_to_be_cheaper(tmp_path: Path) -> None:
    one = recorded(tmp_path, [S, S])
    short, long = (project([one], TrainingRun(trajectories=3600, workers=1, actions=n, run_sd=0.0))[0] for n in (2, 12))
    assert "first_cycle_only" not in short.flags
    assert "first_cycle_only" in long.flags
    for interval in (long.worker_hours, long.trajectory_s.mean):
        assert interval.low == pytest.approx(5 + 10 * FIRST_CYCLE[0], rel=1e-6)
        assert interval.high == pytest.approx(5 + 10 * FIRST_CYCLE[1], rel=1e-6)


def test_what_the_later_cycles_still_change_by_widens_the_interval(tmp_path: Path) -> None:
    one = recorded(tmp_path, [900, 900, 100, 100, 90, 90, 90, 90])
    assert extrapolation_error(one.cells[0].trials, 2) == pytest.approx((0, -0.1, 0.1), abs=0.02)
    assert later_change(one.cells[0].trials[:0], 2) is None


def test_the_shipped_recordings_predict_their_longer_lengths() -> None:
    steps = held_out()
    assert list(steps) == [(10, 50), (10, 150), (50, 150)]
    long = [step.inside for _, step in steps[50, 150]]
    assert len(long) >= 16
    assert sum(long) >= 0.9 * len(long)
    every = [step.inside for cells in steps.values() for _, step in cells]
    assert sum(every) >= 0.95 * len(every)  # the intervals are of 95 %


def test_from_ten_actions_the_shipped_recordings_are_flagged() -> None:
    run = load(Path(__file__).parents[3] / "recordings" / "small.msgpack")
    for row in project([run], TrainingRun(trajectories=100, workers=1, actions=50)):
        assert "first_cycle_only" in row.flags
