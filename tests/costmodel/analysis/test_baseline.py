"""Rows beside one another: baselines and comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from costmodel import TrainingRunError, load, project
from tests.support.asking import ask
from tests.support.cost_model.costmodel_files import S, cell, trial, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def two_substrates(folder: Path, name: str = "a", slow: int = 3, **other: Any) -> Path:
    """docker: 3 s and 1 s an action (half of it work); the other: 4 s and ``slow`` s an action."""
    fast = [trial(n, create=(2 + n % 2) * S, runs=[S // 2] * 3) for n in range(6)]
    slower = [trial(n, cell=1, create=(3 + n % 2) * S, actions=[slow * S] * 3, runs=[S] * 3) for n in range(10, 16)]
    return write(folder / name, fast + slower, cell(0), cell(1, **{"substrate": "kubernetes"} | other))


def test_rows_are_compared_with_the_baseline(folder: Path) -> None:
    docker, other = project([load(two_substrates(folder))], ask(baseline="docker", full_speed="docker"))
    assert docker.versus is None
    assert other.versus.worker_hours.value == pytest.approx(7)
    assert other.versus.verdict.kind == "differs"
    assert other.versus.baseline == docker.identity.cell_id
    assert (other.by_cause_worker_hours.slowdown, other.by_cause_worker_hours.work) == pytest.approx((1.5, 1.5))
    assert docker.by_cause_worker_hours.slowdown == 0
    near = project([load(two_substrates(folder, "b", slow=1))], ask(baseline="docker"))[1]
    assert near.versus.verdict.kind == "differs"
    with pytest.raises(TrainingRunError, match="no row for 'podman'; the recordings hold docker, kubernetes"):
        project([load(two_substrates(folder, "c"))], ask(baseline="podman"))
    with pytest.raises(TrainingRunError, match="no row for 'docker:runtime=runsc'"):
        project([load(two_substrates(folder, "d"))], ask(full_speed="docker:runtime=runsc"))


def test_comparisons_across_places_are_flagged_and_across_provenance_refused(folder: Path) -> None:
    rows = project([load(two_substrates(folder, environment="elsewhere"))], ask(baseline="docker"))
    assert "environment_differs" in rows[1].flags
    rows = project([load(two_substrates(folder, "b", provenance="stand_in"))], ask(baseline="docker"))
    assert rows[1].versus is None
    assert "provenance_differs" in rows[1].flags
    unlike = project([load(two_substrates(folder, "c", tier="T1"))], ask(baseline="docker"))[1]
    assert (unlike.versus, "provenance_differs" in unlike.flags) == (None, False)


def test_variants_are_told_apart(folder: Path) -> None:
    file = two_substrates(folder, substrate="docker", variant="runtime=runsc")
    plain, runsc = project([load(file)], ask(baseline="docker:runtime=runsc"))
    assert runsc.versus is None
    plain, runsc = project([load(file)], ask(baseline="docker"))
    assert (plain.versus, runsc.versus is None) == (None, False)
