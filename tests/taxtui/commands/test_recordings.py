"""``taxtui export`` and ``taxtui recordings``: recorded values in a whole file or none; texts of damaged files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

import costmodel
from costmodel.recording import framing
from costmodel.recording.table import COLUMNS, table_rows
from taxtui import folders
from taxtui.cli import app
from taxtui.commands.export import FORMATS, TABLES, command
from taxtui.errors import RecordingError, UsageError
from taxtui.recording.writer import Recorder
from taxtui.report.formats.csv_rows import harmless
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import cell, trial, write
from tests.taxtui.tui import story

SMALL: Final = Path(__file__).parents[3] / "recordings" / "small.msgpack"
GOLDEN: Final = Path(__file__).parents[1] / "recording" / "golden.msgpack"


def exported(*words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


def same(row: dict[str, Any], text: dict[str, str]) -> bool:
    return all(
        text[name] == ("" if value is None else str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in row.items()
    )


@pytest.mark.parametrize("path", [SMALL, GOLDEN], ids=["small", "golden"])
@pytest.mark.parametrize("table", TABLES)
def test_every_format_has_the_same_rows(path: Path, table: str) -> None:
    names = [column.name for column in COLUMNS[table]]
    told = [dict(zip(names, row, strict=True)) for row in table_rows([path], table)]
    assert told
    assert costmodel.frame(path, table=table) == {name: [row[name] for row in told] for name in names}
    lines = exported(path, "--table", table, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == told
    text = list(csv.DictReader(io.StringIO(exported(path, "--table", table, "--format", "csv").stdout)))
    assert len(text) == len(told)
    assert all(map(same, told, text))


def test_wrapper_time_is_a_column_of_trials_and_empty_where_it_was_not_measured() -> None:
    assert any(costmodel.frame(SMALL.with_name("run.msgpack"), table="trials")["wrapper_ns"])
    assert set(costmodel.frame(SMALL, table="trials")["wrapper_ns"]) == {None}


def test_option_or_name_of_the_file_say_its_format(tmp_path: Path) -> None:
    for name, options, beginning in (("t.csv", [], b'"run_id",'), ("t", ["--format", "jsonl"], b'{"')):
        assert exported(SMALL, *options, "-o", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(beginning)
    with pytest.raises(UsageError, match="is the ending of no format; add --format: csv, jsonl"):
        exported(SMALL, "-o", tmp_path / "x.parquet")


@pytest.mark.parametrize("form", FORMATS)
def test_names_from_a_recording_steer_neither_a_terminal_nor_a_spreadsheet(form: str, tmp_path: Path) -> None:
    path = tmp_path / "r.msgpack"
    with Recorder(path) as recorder:
        for event in [story.header([]), story.clock(), story.cell(0, '=HYPERLINK("x")\x1b[31m'), *story.trial(0, 0, 0)]:
            recorder.add(event)
    text = exported(path, "--format", form).stdout
    assert ("\x1b" in text, "u001b" in text, "HYPERLINK" in text) == (False, False, True)
    if form == "csv":
        [row] = csv.DictReader(io.StringIO(text))
        assert row["substrate"].startswith("'=HYPERLINK")


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", " =1", "\N{FULLWIDTH EQUALS SIGN}1", "\n=1"])
def test_no_text_in_csv_begins_a_formula(text: str) -> None:
    assert harmless(text)[0] in "'\N{REPLACEMENT CHARACTER}"


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    damaged, out = tmp_path / "damaged.msgpack", tmp_path / "out"
    data = bytearray(SMALL.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    for form in FORMATS:
        with pytest.raises((costmodel.SourceError, RecordingError), match="damaged at byte"):
            exported(damaged, "--format", form, "-o", out)
        assert not out.exists()
    out.write_text("precious")
    with pytest.raises(UsageError, match="choose another name with -o"):
        exported(SMALL, "-o", out)
    assert out.read_text() == "precious"
    with pytest.raises(UsageError, match="cannot create"):
        exported(SMALL, "-o", tmp_path / "no" / "folder")


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
