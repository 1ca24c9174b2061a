"""Modes of one substrate are compared like substrates: how many times longer ``exec`` runs than ``session``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from costmodel.analysis.headline import sentence
from costmodel.analysis.project import project
from costmodel.analysis.ranking import answer_of
from costmodel.recording.reader import load
from costmodel.training.run import TrainingRun
from taxtui.cli import app
from tests.support.cost_model.costmodel_files import S, cell, trial, write

RUN = Path(__file__).parents[3] / "recordings" / "run.msgpack"
ONCE = TrainingRun(trajectories=10**6, workers=500)


def docker_alone(path: Path) -> Path:
    """One work by exec and by session: 4 s and 1 s an action, of which one is work; slower from block to block."""
    trials = [
        trial(
            2 * block + mode,
            cell=mode,
            create=S,
            actions=[(4 - 3 * mode) * S * (8 + block) // 8 + block * block * S // 100] * 3,
            runs=[S // 2] * 3,
            block=block,
        )
        for block in range(8)
        for mode in range(2)
    ]
    return write(path, trials, cell(0), cell(1, mode="session"))


def test_one_substrate_alone_has_its_modes_in_the_headline(tmp_path: Path) -> None:
    rows = project([load(docker_alone(tmp_path / "a.msgpack"))], ONCE)
    found = answer_of(rows)
    [one] = found.modes
    exec_row, session_row = rows
    assert exec_row.worker_hours is not None
    assert session_row.worker_hours is not None
    assert one.ratio.value == pytest.approx(exec_row.worker_hours.value / session_row.worker_hours.value)
    assert one.verdict.kind == "differs"
    said = sentence(found)
    assert said.startswith(f"docker exec runs {one.ratio.value:.2f} ± ")
    assert "times longer than docker session for T2 x 3; " in said
    assert said.endswith(" of dispatch per action is all of the difference.")


def test_every_place_and_work_is_compared_in_table_and_json() -> None:
    rows = project([load(RUN)], ONCE)
    found = answer_of(rows)
    assert len(found.modes) == 18
    asked = ["project", str(RUN), "--trajectories", "1000000", "--workers", "500"]
    text = CliRunner().invoke(app, asked).output
    assert "How many times longer exec runs than session" in text
    docker = next(one for one in found.modes if (one.name, one.place.name) == ("T1 50", "docker:runc"))
    assert f"{docker.ratio.value:.2f}x" in text
    records = json.loads(CliRunner().invoke(app, [*asked, "--format", "json"]).output)
    told = {record["cell_id"]: record["answer"] for record in records}
    answer = told[docker.row.identity.cell_id]
    assert answer["session"] == docker.session.identity.cell_id
    assert answer["ratio_to_session"] == docker.ratio._asdict()
    assert answer["verdict_to_session"] == "differs"
    assert told[docker.session.identity.cell_id]["session"] is None
    assert len(answer_of(rows).showing([docker.row]).modes) == 0
    assert len(answer_of(rows).showing([docker.row, docker.session]).modes) == 1
