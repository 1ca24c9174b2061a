"""Cells that differ in concurrency only are one row of a projection, at the concurrency of the training run."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import Recording, Row, TrainingRun, load, project
from taxtui.report.projected.explain import to_text
from taxtui.report.projected.record import record
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.simulating import attribute_coarsely

MS = S // 1000


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_coarsely(monkeypatch)


SLOWER = {1: 1.0, 4: 1.5, 16: 3.0}
AT_1, AT_4, AT_16 = 2 + 3 * 1.2, 2 + 3 * 1.7, 2 + 3 * 3.2
"""Occupied seconds of a success: 2 s of start, and 3 actions with 200 ms of dispatch each."""
STEPS = {"batch": 500, "nodes": 125, "pods_per_node": 4}


def recorded(folder: Path, slower: dict[int, float] | None = None) -> Recording:
    """Record each action with 1 s of work, times a factor that grows with the concurrency."""
    cells, trials = [], []
    for number, (level, factor) in enumerate((slower or SLOWER).items()):
        cells.append(cell(number, concurrency=level))
        work = round(factor * S)
        taken = {"create": 2 * S, "ready": 0, "actions": (work + 200 * MS,) * 3, "runs": (work,) * 3}
        trials += [trial(100 * number + n, cell=number, **taken) for n in range(10)]
    return load(write(folder / "levels.msgpack", trials, *cells))


def row(recording: Recording, workers: int, **training_run: object) -> Row:
    fields = {"trajectories": 1000, "workers": workers, "run_sd": 0.0} | training_run
    (only,) = project([recording], TrainingRun(**fields))  # type: ignore[arg-type]
    return only


@pytest.mark.parametrize(
    ("levels", "asked", "limits", "at_a_time", "law"),
    [
        (SLOWER, {"workers": 4}, (AT_4, AT_4), 4, "measured at 4"),
        (SLOWER, {"workers": 8}, (AT_4, AT_16), 8, "between 4 and 16, x0."),
        (SLOWER, {"workers": 32}, (AT_16, 2 * AT_16), 32, "2 times the highest level of 16: as there, or at most x2;"),
        (SLOWER, {"quota": 4}, (AT_4, AT_4), 4, "measured at 4"),
        (SLOWER, STEPS, (AT_4, AT_4), 4, "measured at 4"),
        (SLOWER, STEPS | {"pods_per_node": 42, "nodes": 12}, (AT_16, None), 42, "2.62 times the highest level"),
        ({4: 1.5, 16: 3.0}, {"workers": 1}, (AT_4, AT_4), 1, "as at 4, the lowest level"),
    ],
)
def test_a_row_is_measured_interpolated_or_a_lower_limit(
    tmp_path: Path,
    levels: dict[int, float],
    asked: dict[str, int],
    limits: tuple[float, float | None],
    at_a_time: int,
    law: str,
) -> None:
    found = row(recorded(tmp_path, levels), **{"workers": 500, **asked})
    assert found.levels.law.startswith(law)
    assert found.levels.at_a_time == at_a_time
    assert [level for level, _ in found.levels.levels] == list(levels)
    held, (low, high) = found.held_per_success_s, limits
    assert held.low == pytest.approx(low, rel=0.01)
    assert held.high == (None if high is None else pytest.approx(high, rel=0.01))
    assert ("beyond_measured_concurrency" in found.flags) == (at_a_time > 16)


def test_between_two_levels_only_work_grows_and_another_length_is_projected_at_the_same_one(tmp_path: Path) -> None:
    parts = row(recorded(tmp_path), 8).by_cause_worker_hours
    assert (parts.startup * 3.6, parts.dispatch * 3.6) == pytest.approx((2, 0.6))
    longer = row(recorded(tmp_path), 16, actions=6).held_per_success_s
    assert longer.value == pytest.approx(2 + 6 * 3.2)


def test_beyond_twice_the_highest_level_its_row_is_the_lower_limit(tmp_path: Path) -> None:
    recording = recorded(tmp_path, {1: 1.0, 2: 1.01, 4: 1.02, 8: 1.35})
    far, there = row(recording, 500, timeout_s=1e5), row(recording, 8, timeout_s=1e5)
    assert "highest level of 8: at least as there; measure it with --concurrency 500" in far.levels.law
    for name in ("worker_hours", "tax_worker_hours", "held_per_success_s"):
        assert getattr(far, name) == getattr(there, name)._replace(high=None)
    assert far.wall_clock_hours.high is None


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
