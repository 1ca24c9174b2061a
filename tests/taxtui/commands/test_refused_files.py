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


def test_a_chart_of_nothing_is_left_out() -> None:
    result = CliRunner().invoke(app, [*PROJECT, "--batch", "16", "--gpus", "8", "--set", "gpu_usd_hour=0"])
    assert result.exit_code == 0, result.exception


def test_outputs_and_names_are_checked_first() -> None:
    Path("dangling").symlink_to("nowhere")
    assert "dangling exists" in refusal(*DECIDE, "-o", "dangling")
    assert "name two files" in refusal(*DECIDE, "-o", "same", "--html", "./same")
    assert "run id is not valid" in refusal("clean", "--run", "../..")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--set train_s=1e308", "train_s must be a number of at least 0 (1e-12 to 9.2e+09)"),
        ("--set failure_hazard=1e-308", "failure_hazard must be a number of at least 0 (1e-12 to 1e+12)"),
        ("--compose e2b:slowdown=1e308", "slowdown must be a factor above 0"),
        ("--tier T1 --set tier=T9", "--tier and --set tier are both given"),
    ],
)
def test_values_out_of_range_and_keys_given_twice(options: str, complaint: str) -> None:
    assert complaint in refusal(*PROJECT, *options.split())


def test_decide_ignores_no_option() -> None:
    assert "-n chooses nothing" in refusal(*DECIDE, "--length", "10", "-n", "10")
    assert "--compose e2b is not --to daytona" in refusal(*DECIDE, "--compose", "e2b")
    assert "both local" in refusal("decide", "small.msgpack", "--from", "local", "--to", "local:bwrap")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--repeat 1e9", "more than 10,000,000 trials"),
        ("--trials 1e18", "more than 10,000,000 trials"),
        ("--resume c.msgpack", "start another run"),
        ("--prices nosuch.toml", "cannot read nosuch.toml"),
        ("--max-cost 1", "needs to know prices"),
        ("-o c.msgpack", "c.msgpack exists"),
        ("--acquire nosuch", "cannot acquire sandboxes by 'nosuch'"),
        ("-s nosuch", "unknown substrate 'nosuch'"),
    ],
)
def test_a_dry_run_refuses_as_the_run(options: str, complaint: str) -> None:
    assert complaint in refusal("run", "-s", "local", "-t", "T0", "--dry-run", *options.split())
