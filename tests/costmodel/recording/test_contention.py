"""What commands wait because others run is no work: read off CPU time, against the same cell alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from costmodel import TrainingRun, load, project
from taxtui.cli import app
from tests.support.cost_model.costmodel_files import S, cell, trial, write

SLEEP = S // 2
"""That each action sleeps, alone or not: waiting, and no contention."""


def both_cells(folder: Path, *, alone: bool = True, cpus: bool = True) -> Path:
    """1 s of CPU time per action; side by side each action also waits 1 s for the other sandbox."""
    trials = []
    for number in range(8):
        crowd = number % 2
        run = S + SLEEP + crowd * S
        told = {"cpus": [S] * 3} if cpus else {}
        trials.append(trial(number, cell=crowd, actions=[run + S // 10] * 3, runs=[run] * 3, **told))
    cells = [cell(0, concurrency=1 if alone else 4), cell(1, concurrency=2, arrival="closed")]
    return write(folder / "a.msgpack", trials, *cells)


def reported(path: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["report", str(path), "--format", "json"])
    assert result.exit_code == 0
    found: list[dict[str, Any]] = json.loads(result.output)
    return sorted(found, key=lambda row: int(row["concurrency"]))


def test_the_share_of_the_tax_does_not_fall_where_sandboxes_compete(tmp_path: Path) -> None:
    alone, crowd = reported(both_cells(tmp_path))
    assert (alone["work_per_success_ns"], crowd["work_per_success_ns"]) == (4.5 * S, 4.5 * S)
    assert (alone["tax_by_cause_ns"]["contention"], crowd["tax_by_cause_ns"]["contention"]) == (0, 3 * S)
    assert (alone["mean_ns"]["waiting"], crowd["mean_ns"]["waiting"]) == (1.5 * S, 4.5 * S)
    assert (crowd["mean_ns"]["work"], crowd["mean_ns"]["contention"]) == (4.5 * S, 3 * S)
    assert crowd["tax_share_of_held"] > alone["tax_share_of_held"]
    parts = crowd["tax_by_cause_ns"].values()
    assert sum(parts) == crowd["tax_per_success_ns"]["value"] == pytest.approx((3 + 0.3 + 3) * S)


def test_report_and_project_say_the_same(tmp_path: Path) -> None:
    path = both_cells(tmp_path)
    for row, told in zip(
        project([load(path)], TrainingRun(trajectories=3600, workers=1), each_level=True), reported(path), strict=True
    ):
        causes = row.by_cause_worker_hours
        assert causes.contention == pytest.approx(told["tax_by_cause_ns"]["contention"] / S)
        assert causes.work == pytest.approx(told["work_per_success_ns"] / S)
        assert row.tax_worker_hours.value == pytest.approx(told["tax_per_success_ns"]["value"] / S)
        assert sum(part or 0.0 for part in causes) == pytest.approx(row.worker_hours.value)


def test_at_another_length_contention_keeps_its_share_of_the_run(tmp_path: Path) -> None:
    rows = project([load(both_cells(tmp_path))], TrainingRun(trajectories=3600, workers=1, actions=6), each_level=True)
    causes = rows[1].by_cause_worker_hours
    assert (causes.contention, causes.work) == pytest.approx((6, 9))


@pytest.mark.parametrize(("alone", "cpus"), [(False, True), (True, False)])
def test_it_is_unknown_without_the_cell_alone_or_without_cpu_time(tmp_path: Path, alone: bool, cpus: bool) -> None:
    path = both_cells(tmp_path, alone=alone, cpus=cpus)
    rows = {row["concurrency"]: row for row in reported(path)}
    assert rows[2]["tax_by_cause_ns"]["contention"] is None
    assert rows[2]["work_per_success_ns"] == 7.5 * S
    assert "contention_unknown" in rows[2]["flags"]
    if not cpus:
        assert rows[1]["mean_ns"]["waiting"] is None
        assert "contention_unknown" not in rows[1]["flags"]
