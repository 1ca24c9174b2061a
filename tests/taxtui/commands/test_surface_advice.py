"""Commands find the same recordings, and say what is missing before they compute for long."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import costmodel
from taxtui.cli import app
from taxtui.errors import TooLittleData, UsageError
from taxtui.live import catalogue
from taxtui.options.training_file import TEMPLATE
from taxtui.runner.redaction import scrub
from tests.support.cost_model.costmodel_files import cell, trial, write


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    write(tmp_path / "r.msgpack", [trial(n) for n in range(8)], cell(substrate="docker", tier="T1"))
    return tmp_path / "r.msgpack"


def test_recordings_takes_the_names_that_report_takes(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "by_age", lambda: ([recording], []))
    for words in (["info", "last"], ["verify", "last"], ["trial", "last", "1"], ["info", "small.msgpack"]):
        done = CliRunner().invoke(app, ["recordings", *words])
        assert done.exit_code == 0, (words, done.output, done.exception)


def test_verify_goes_on_after_a_missing_file(recording: Path) -> None:
    done = CliRunner().invoke(app, ["recordings", "verify", "nowhere.msgpack", str(recording)])
    assert done.exit_code == 4
    assert "there is no nowhere.msgpack" in done.output
    assert f"{recording}: complete" in done.output


def test_decide_refuses_missing_node_prices_before_it_simulates(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that ``project --init`` prints has these prices as a comment."""
    monkeypatch.setattr(costmodel, "project", lambda *_, **__: pytest.fail("simulated"))
    (tmp_path / "lab.toml").write_text(TEMPLATE)
    words = ["decide", str(recording), "--to", "daytona", "--training", str(tmp_path / "lab.toml")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UsageError)
    assert "docker costs nothing here and daytona is billed; add nodes, pods_per_node and node_usd_hour" in str(
        done.exception
    )


def test_compare_advises_the_repetitions_of_the_study() -> None:
    done = CliRunner().invoke(app, ["compare", "kubernetes.msgpack", "kubernetes2.msgpack", "--fail-above", "10%"])
    assert isinstance(done.exception, TooLittleData)
    assert "--repeat 5" in str(done.exception)


def test_the_version_of_a_debian_package_is_no_name() -> None:
    assert scrub("ready, 20.10.24+dfsg1, runc") == "ready, 20.10.24+dfsg1, runc"
