"""What a run in steps is charged follows the tariff as every other row's bill does."""

from __future__ import annotations

from pathlib import Path

import pytest

from costmodel import TrainingRun, load, load_prices, project
from costmodel.projection.row import Cost
from tests.support.asking import present
from tests.support.cost_model.costmodel_files import S, trial, write

STEPS = {"trajectories": 40, "workers": 10, "batch": 10, "failure_rate": 1e-9, "run_sd": 0.0}
HEAD = 'date = 2026-05-01\n[[sandbox]]\nsubstrate = "docker"\nminimum_s = 0\nincrement_s = 1\nsource = ["a", "b"]\n'


def charged(folder: Path, keys: str, **more: object) -> Cost:
    trials = [trial(n, actions=(S,) * 3, cpus=(500_000_000,) * 3) for n in range(20)]
    (folder / "sheet.toml").write_text(HEAD + keys)
    training_run = TrainingRun(**STEPS | more)  # type: ignore[arg-type]
    (row,) = project([load(write(folder / "run.msgpack", trials))], training_run, load_prices(folder / "sheet.toml"))
    assert row.attribution is not None
    return present(row.cost)


def test_cpu_time_and_creates_are_billed(tmp_path: Path) -> None:
    bill = charged(tmp_path, 'cpu = "active"\nusd_per_vcpu_hour = 3600\nusd_per_create = 2')
    assert bill.sandbox_usd.value == pytest.approx(40 * (1.5 + 2), rel=0.01)


def test_sources_that_disagree_make_a_range(tmp_path: Path) -> None:
    bill = charged(tmp_path, "usd_per_hour = [1800, 5400]")
    assert bill.sandbox_usd.value == pytest.approx(40 * 6, rel=0.01)
    assert present(bill.sandbox_usd.low) <= 40 * 3.01
    assert present(bill.sandbox_usd.high) >= 40 * 8.99


def test_the_sheets_nodes_are_paid_for_while_the_run_lasts(tmp_path: Path) -> None:
    bill = charged(tmp_path, "usd_per_node_hour = 3600\nsandboxes_per_node = 7")
    assert bill.sandbox_usd.value == pytest.approx(2 * 4 * 6, rel=0.01)  # 2 nodes, 4 steps of 6 s
