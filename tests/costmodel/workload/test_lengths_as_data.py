"""A cell whose trials each have a length of their own: read, shown, projected, and told from others."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import costmodel
from costmodel import TrainingRun
from costmodel.recording.follower import read_events
from costmodel.training.length import Length
from costmodel.workload.pool import attempts, pools
from taxtui.cli import app
from taxtui.live.state import RunState
from tests.support.cost_model.costmodel_files import S, cell, trial, write

LENGTHS = (2, 3, 3, 8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    trials = [trial(n, actions=[S] * count) for n, count in enumerate(LENGTHS)]
    trials.append(trial(9, actions=[S] * 5, outcome="failed"))
    return write(tmp_path / "varied.msgpack", trials, cell(0, actions=0, length="recorded", cycle=1))


def run(*words: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


def test_every_trial_counts_with_the_length_it_has(path: Path) -> None:
    (row,) = costmodel.project([costmodel.load(path)], TrainingRun(trajectories=3600, workers=1))
    assert (row.trials, row.failures) == (5, 1)
    assert row.length == Length(((2, 1), (3, 2), (8, 1)))
    assert row.actions == 4
    assert row.worker_hours.value == pytest.approx((5 * 3 + sum(LENGTHS) + 5) / 4)
    assert "beyond_measured_length" not in row.flags


def test_a_law_of_lengths_is_the_mixture_of_its_lengths(path: Path) -> None:
    (pool,) = pools([costmodel.load(path)])
    training_run = TrainingRun(trajectories=3600, workers=1)
    found = attempts(pool, Length(((2, 3), (4, 1))), training_run)
    assert [(one.trial, one.actions, one.weight) for one in found[:4]] == [(0, 2, 3), (0, 4, 1), (1, 2, 3), (1, 4, 1)]
    assert [one.held_ns // S for one in found[:2]] == [5, 7]  # the first has two actions, the rest repeats them
    mixed = costmodel.project(
        [costmodel.load(path)], TrainingRun(trajectories=3600, workers=1, actions=Length(((2, 3), (4, 1))))
    )
    parts = [
        costmodel.project([costmodel.load(path)], TrainingRun(trajectories=3600, workers=1, actions=n)) for n in (2, 4)
    ]
    hours = [row.worker_hours.value for (row,) in (mixed, *parts) if row.worker_hours]
    assert hours[0] == pytest.approx((3 * hours[1] + hours[2]) / 4, rel=1e-9)


def test_a_wide_law_is_dealt_out_without_moving_its_mean(path: Path) -> None:
    (pool,) = pools([costmodel.load(path)])
    found = attempts(pool, Length.between(1, 2000), TrainingRun(trajectories=1, workers=1))
    good = [one for one in found if one.ok]
    assert {one.trial for one in found} == set(range(5))
    assert sum(one.actions * one.weight for one in good if one.trial < 4) / sum(
        one.weight for one in good if one.trial < 4
    ) == pytest.approx(1000.5, rel=0.03)
    weights = [sum(one.weight for one in found if one.trial == number) for number in range(5)]
    assert len(set(weights)) == 1


def test_a_trajectory_without_an_action_goes_on_as_the_longest_of_its_cell(tmp_path: Path) -> None:
    trials = [trial(0, actions=()), trial(1, actions=[S] * 4), trial(2, actions=[2 * S] * 2)]
    path = write(tmp_path / "a.msgpack", trials, cell(0, actions=0, length="recorded", cycle=1))
    (pool,) = pools([costmodel.load(path)])
    found = attempts(pool, Length.constant(6), TrainingRun(trajectories=1, workers=1))
    assert [one.held_ns // S for one in found] == [3 + 6, 3 + 6, 3 + 12]
    assert [one.run_ns // S for one in found] == [6, 6, 12]
    own = attempts(pool, None, TrainingRun(trajectories=1, workers=1))
    assert [one.held_ns // S for one in own] == [3, 7, 7]


def test_what_is_shown_is_the_shortest_the_longest_and_the_mean(path: Path) -> None:
    assert "T2 2-8 avg 4 exec c1" in run("report", path, "--table", "tax").output
    told = run("project", path, "--trajectories", "100", "--workers", "1").output
    assert "T2 2-8 avg 4 exec" in told
    assert "100 trajectories of 2-8 avg 4 actions" in told
    assert "T2 x 2-8 avg 4 exec" in run("recordings", "info", path).output
    state = RunState()
    read_events(path, state.apply)
    assert state.cells[0].workload == "T2 x 2-8 avg 4"
    assert state.cells[0].mean_actions == 4


def test_the_length_is_part_of_the_identity_and_fixed_cells_keep_their_ids(tmp_path: Path, path: Path) -> None:
    fixed = costmodel.load(write(tmp_path / "fixed", [trial(0)], cell(0, actions=3)))
    found = costmodel.load(path)
    (one,), (other,) = fixed.cells, found.cells
    assert one.identity.cell_id == "51ef20c4"
    assert one.identity._replace(length="recorded").cell_id != one.identity.cell_id
    assert other.identity.length == "recorded"


def test_cells_of_other_lengths_are_not_ranked_against_each_other(tmp_path: Path) -> None:
    cells = [cell(n, actions=0, length="recorded", substrate=name) for n, name in enumerate("abc")]
    trials = [trial(n, cell=n % 3, actions=[S] * (2 + n % 3 // 2)) for n in range(30)]
    path = write(tmp_path / "a.msgpack", trials, *cells)
    rows = costmodel.project([costmodel.load(path)], TrainingRun(trajectories=9, workers=1, baseline="a"))
    assert [row.versus is not None for row in rows] == [False, True, False]


def test_a_law_says_what_it_is() -> None:
    law = Length.of([7, 31, 7, 9])
    assert (law.low, law.high, law.mean) == (7, 31, Fraction(27, 2))
    assert law.draws(4) == [7, 7, 9, 31]
    assert law == Length.weighted({9: 2, 31: 2, 7: 4})
    assert (str(law), str(Length.constant(1000))) == ("7-31 avg 13.5", "1,000")
    for bad in ({}, {3: 0}, {-1: 2}, {3: -1, 4: 5}):
        with pytest.raises(costmodel.TrainingRunError):
            Length.weighted(bad)
