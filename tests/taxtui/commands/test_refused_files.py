"""Files and values that a command refuses before the computation, in one line."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from taxtui.cli import app
from taxtui.plan.scenario import bundled

COMPARE = ("compare", "small.msgpack", "run.msgpack", "--fail-above", "90%")
PROJECT = ("project", "small.msgpack", "--trajectories", "64", "--workers", "8")
DECIDE = ("decide", "small.msgpack", "--to", "daytona", "--from", "local")


def refusal(*words: str) -> str:
    done = CliRunner().invoke(app, words, standalone_mode=False)
    assert isinstance(done.exception, ValueError), (done.exception, done.output)
    return str(done.exception)


@pytest.fixture(autouse=True)
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shipped = bundled("../recordings/small.msgpack") or bundled("recordings/small.msgpack")
    assert shipped is not None
    return Path(shutil.copy(shipped, tmp_path / "c.msgpack"))


def test_compare_writes_into_no_recording_and_no_file_twice(recording: Path) -> None:
    before = recording.read_bytes()
    os.link(recording, "link")
    assert "is no text" in refusal(*COMPARE, "--summary", "link")
    assert "is no XML" in refusal(*COMPARE, "--junit", "link")
    assert "uses this file" in refusal(*COMPARE, "--pool-after", "c.msgpack", "--summary", "c.msgpack")
    assert "uses this file" in refusal(*COMPARE, "--junit", "x", "--summary", "./x")
    assert recording.read_bytes() == before
    Path("s.md").write_text("é\n" * 4096, encoding="utf-8")
    CliRunner().invoke(app, [*COMPARE, "--summary", "s.md", "--junit", "/dev/null"])
    assert "## taxtui compare" in Path("s.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("change", ["gpu_usd_hour=0", "gpu_usd_hour=1e-308"])
def test_a_chart_of_nothing_is_left_out(change: str) -> None:
    result = CliRunner().invoke(app, [*PROJECT, "--batch", "16", "--gpus", "8", "--set", change])
    assert result.exit_code == 0, result.exception


def test_outputs_and_names_are_checked_first() -> None:
    Path("dangling").symlink_to("nowhere")
    assert "dangling exists" in refusal(*DECIDE, "-o", "dangling")
    assert "name two files" in refusal(*DECIDE, "-o", "same", "--html", "./same")
    assert "run id is not valid" in refusal("clean", "--run", "../..")
