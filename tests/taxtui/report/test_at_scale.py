"""Cells that differ in how many ran at a time only are one row: one question has one answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import Recording, Row, TrainingRun, load, project
from costmodel.workload.pool import by_levels, pools
from taxtui.report.projected.explain import to_text
from taxtui.report.projected.record import record
from tests.support.cost_model.costmodel_files import S, cell, trial, write

MS = S // 1000
SLOWER = {1: 1.0, 4: 1.5, 16: 3.0}


def recorded(folder: Path, slower: dict[int, float] | None = None) -> Recording:
    """Each action takes 1 s of work and 200 ms of dispatch alone, and starts 2 s; more at a time are slower."""
    cells, trials = [], []
    for number, (level, factor) in enumerate((slower or SLOWER).items()):
        cells.append(cell(number, concurrency=level))
        work = round(factor * S)
        trials += [
            trial(
                100 * number + n, cell=number, create=2 * S, ready=0, actions=(work + 200 * MS,) * 3, runs=(work,) * 3
            )
            for n in range(10)
        ]
    found = load(write(folder / "levels.msgpack", trials, *cells))
    assert isinstance(found, Recording)
    return found


def row(recording: Recording, workers: int, **training_run: object) -> Row:
    (found,) = project(
        [recording], TrainingRun(**{"trajectories": 1000, "workers": workers, "run_sd": 0.0} | training_run)
    )  # type: ignore[arg-type]
    return found


def held_s(found: Row) -> float:
    assert found.held_per_success_s is not None
    return found.held_per_success_s.value


def test_a_level_that_was_measured_is_its_own_row(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    found = row(recording, 4)
    assert held_s(found) == pytest.approx(2 + 3 * 1.7)
    assert found.identity.concurrency == 4
    assert found.levels is not None
    assert [level for level, _ in found.levels.levels] == [1, 4, 16]
    assert (found.levels.at_a_time, found.levels.beyond, found.levels.law) == (4, 1.0, "measured at 4")
    assert "beyond_measured_concurrency" not in found.flags


def test_between_two_levels_it_is_between_their_rows(tmp_path: Path) -> None:
    found = row(recorded(tmp_path), 8)
    assert 2 + 3 * 1.7 < held_s(found) < 2 + 3 * 3.2
    assert found.by_cause_worker_hours is not None
    parts = found.by_cause_worker_hours
    assert parts.startup * 3.6 == pytest.approx(2)  # only work grows
    assert parts.dispatch is not None
    assert parts.dispatch * 3.6 == pytest.approx(0.6)
    assert found.held_per_success_s is not None
    low, high = found.held_per_success_s.low, found.held_per_success_s.high
    assert low == pytest.approx(2 + 3 * 1.7, rel=0.01)
    assert high == pytest.approx(2 + 3 * 3.2, rel=0.01)
    assert found.levels is not None
    assert found.levels.law.startswith("between 4 and 16, x0.")


def test_up_to_twice_the_last_level_it_has_an_upper_limit(tmp_path: Path) -> None:
    found = row(recorded(tmp_path), 32)
    assert held_s(found) == pytest.approx(2 + 3 * 3.2)
    assert found.held_per_success_s is not None
    assert found.held_per_success_s.high == pytest.approx(2 * (2 + 3 * 3.2), rel=0.01)
    assert found.levels is not None
    assert found.levels.law == "2 times the highest level of 16: as there, or at most x2; --concurrency 32 tells"
    assert "beyond_measured_concurrency" in found.flags


@pytest.mark.parametrize("levels", [{1: 1.0, 2: 1.01, 4: 1.02}, {1: 1.0, 2: 1.01, 4: 1.02, 8: 1.35}])
def test_beyond_twice_the_last_level_it_is_at_least_that_levels_row(tmp_path: Path, levels: dict[int, float]) -> None:
    """One level more was 700 times as dear once, by a law that nobody measured there."""
    recording, last = recorded(tmp_path, levels), max(levels)
    far, there = row(recording, 500, timeout_s=1e5), row(recording, last, timeout_s=1e5)
    assert (far.levels, there.levels) != (None, None)
    assert far.levels is not None
    assert f"highest level of {last}: at least as there; measure it with --concurrency 500" in far.levels.law
    for found, known in (
        (far.worker_hours, there.worker_hours),
        (far.tax_worker_hours, there.tax_worker_hours),
        (far.held_per_success_s, there.held_per_success_s),
    ):
        assert found is not None
        assert known is not None
        assert found == known._replace(high=None)
    assert far.wall_clock_hours is not None
    assert far.wall_clock_hours.low is not None
    assert far.wall_clock_hours.high is None
    assert "beyond_measured_concurrency" in far.flags


def test_what_has_a_lower_limit_only_is_in_no_ratio(tmp_path: Path) -> None:
    cells, trials = [], []
    for number, (substrate, level) in enumerate((s, n) for s in ("docker", "local") for n in (1, 4)):
        cells.append(cell(number, substrate=substrate, concurrency=level))
        trials += [trial(100 * number + n, cell=number, create=(number + 1) * S + n) for n in range(10)]
    recording = load(write(tmp_path / "two.msgpack", trials, *cells))
    for workers, known in ((4, True), (8, True), (500, False)):
        rows = project([recording], TrainingRun(trajectories=1000, workers=workers, baseline="local"))
        [versus] = [found.versus for found in rows if found.versus]
        assert (versus.worker_hours.low is not None) == known
        assert (versus.verdict.kind != "unknown") == known


def test_sandboxes_contend_with_those_on_their_own_node(tmp_path: Path) -> None:
    """125 nodes hold 500 sandboxes, and no node ever sees more than the 4 that were measured."""
    steps = {"batch": 500, "nodes": 125, "pods_per_node": 4}
    found = row(recorded(tmp_path), 500, **steps)
    assert found.levels is not None
    assert (found.levels.at_a_time, found.levels.law) == (4, "measured at 4")
    assert "beyond_measured_concurrency" not in found.flags
    crowded = row(recorded(tmp_path), 500, **steps | {"nodes": 12, "pods_per_node": 42})
    assert crowded.levels is not None
    assert crowded.levels.at_a_time == 42
    assert crowded.worker_hours is not None
    assert crowded.worker_hours.low is not None
    assert crowded.worker_hours.high is None


def test_fewer_than_the_lowest_level_are_as_slow_as_that(tmp_path: Path) -> None:
    found = row(recorded(tmp_path, {4: 1.5, 16: 3.0}), 1)
    assert held_s(found) == pytest.approx(2 + 3 * 1.7)
    assert found.levels is not None
    assert found.levels.law == "as at 4, the lowest level"


def test_one_answer_by_default_and_a_row_for_each_level_where_it_is_asked_for(tmp_path: Path) -> None:
    recording, training_run = recorded(tmp_path), TrainingRun(trajectories=1000, workers=8)
    assert len(project([recording], training_run)) == 1
    each = project([recording], training_run, each_level=True)
    assert [found.identity.concurrency for found in each] == [1, 4, 16]
    assert all(found.levels is None for found in each)
    assert len(by_levels(pools([recording]))) == 1


def test_a_quota_counts_as_so_many_at_a_time(tmp_path: Path) -> None:
    found = row(recorded(tmp_path), 500, quota=4)
    assert found.levels is not None
    assert found.levels.at_a_time == 4


def test_other_lengths_and_think_time_go_with_it(tmp_path: Path) -> None:
    found = row(recorded(tmp_path), 16, actions=6)
    assert held_s(found) == pytest.approx(2 + 6 * 3.2)


def test_a_level_without_a_success_is_a_row_of_its_own(tmp_path: Path) -> None:
    cells = [cell(0, concurrency=1), cell(1, concurrency=4)]
    trials = [trial(n, cell=n % 2, outcome="failed" if n % 2 else "ok") for n in range(8)]
    rows = project([load(write(tmp_path / "x", trials, *cells))], TrainingRun(trajectories=10, workers=2))
    assert [found.worker_hours is None for found in rows] == [False, True]


def test_the_derivation_and_the_json_show_the_levels(tmp_path: Path) -> None:
    recording = recorded(tmp_path, {n: 1 + 0.05 * (n - 1) for n in (1, 4, 16, 64)})
    training_run = TrainingRun(trajectories=1000, workers=256, run_sd=0.0)
    (found,) = project([recording], training_run)
    told = " ".join(to_text(found, training_run).split())
    assert "held at 16 7.85 s of a success" in told
    assert "at 256 4 times the highest level of 64: at least as there; measure it with --concurrency 256" in told
    levels = record(found)["levels"]
    assert levels["levels"]["16"] == pytest.approx(7.85)
    assert (levels["at_a_time"], levels["beyond"]) == (256, 4.0)
    alone = project([recording], training_run, each_level=True)[0]
    assert "held at" not in to_text(alone, training_run)
    assert record(alone)["levels"] is None
