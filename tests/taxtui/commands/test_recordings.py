"""``taxtui recordings``: names, exit codes and texts for complete, incomplete, damaged and missing files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from costmodel.recording import framing
from taxtui import folders
from taxtui.cli import app
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import cell, trial, write


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "r.msgpack", [trial(n) for n in range(8)], cell(substrate="docker", tier="T1"))


def test_a_recording_has_a_path_or_the_name_last_or_a_shipped_name(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "recordings", lambda: recording.parent)
    for words in ("info last", "verify last", "trial last 1", "info small.msgpack"):
        printed("recordings", *words.split())


def test_verify_continues_after_a_missing_file_and_a_torn_recording_is_incomplete(recording: Path) -> None:
    output = printed("recordings", "verify", "nowhere.msgpack", recording, code=4)
    assert f"{recording}: complete" in output
    recording.write_bytes(recording.read_bytes()[:-5])
    output = printed("recordings", "verify", "r.msgpack", code=1)
    assert "r.msgpack: incomplete (no end of the run), " in output
    assert "bytes of a torn frame dropped" in output


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "there is no r.msgpack, neither here nor among what ships with taxtui"),
        (b"", "r.msgpack: the file is empty"),
        (b"a text file", "r.msgpack: not a taxtui recording"),
        (
            framing.frame(b"\x91\x96\x00\xa6taxtui\x02\xa1r\x80\x80"),
            "format version 2, this taxtui reads up to 1; install a newer taxtui",
        ),
    ],
)
def test_a_file_without_a_recording_is_exit_code_4(
    content: bytes | None, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("r.msgpack").write_bytes(content)
    for verb in ("info", "verify"):
        result = CliRunner().invoke(app, ["recordings", verb, "r.msgpack"])
        assert getattr(result.exception, "exit_code", result.exit_code) == 4
        assert text in f"{result.output}{result.exception}"
