"""A recording of a substrate that taxtui no longer has reads, reports and projects as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import costmodel as cm
from taxtui.cli import app
from taxtui.sandboxes import registry

RECORDING = Path(__file__).parents[3] / "recordings/layers.msgpack"
REMOVED = ("nspawn", "runsc:ptrace", "uml")


def output_of(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("label", REMOVED)
def test_its_rows_are_reported(label: str) -> None:
    assert label.partition(":")[0] not in registry.names()
    rows = json.loads(output_of("report", str(RECORDING), "--substrate", label, "--format", "json"))
    assert len(rows) == 5
    assert {row["answer"]["place"] for row in rows} == {label}
    assert all(row["trajectory_ns"]["p50"]["value"] > 0 for row in rows)


def test_it_is_projected_beside_the_others() -> None:
    words = ("--trajectories", "1000", "--workers", "10", "--tier", "T1", "--format", "json")
    rows = json.loads(output_of("project", str(RECORDING), *words))
    assert {row["substrate"] for row in rows} == {"local", "ssh", "nspawn", "docker", "runsc", "uml"}
    assert all(row["worker_hours"] is not None for row in rows)


def test_its_trials_are_exported_and_read_by_the_library(tmp_path: Path) -> None:
    output_of("export", str(RECORDING), "--format", "csv", "-o", str(tmp_path / "rows.csv"))
    assert "nspawn" in (tmp_path / "rows.csv").read_text()
    assert {"nspawn", "runsc", "uml"} <= {cell.identity.substrate for cell in cm.load(RECORDING).cells}


def test_it_cannot_be_measured_again() -> None:
    done = CliRunner().invoke(app, ["run", "-s", "nspawn", "-t", "T0", "-n", "1"], standalone_mode=False)
    assert "unknown substrate 'nspawn'" in f"{done.output}{done.exception}"
