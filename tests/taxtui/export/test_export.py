"""What is taken away is what was recorded: the same values in every format, in a file that is whole or not there."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

import costmodel
from costmodel.recording.events import Actions, PhaseEnded, TrialEnded, TrialStarted
from costmodel.recording.reader import Recording
from costmodel.recording.table import COLUMNS, table_rows
from costmodel.workload.pool import Pool, pools
from taxtui import installed
from taxtui.commands.export import TABLES, command
from taxtui.errors import RecordingError, UsageError
from taxtui.export import NAMES
from taxtui.recording.writer import Recorder
from taxtui.report.formats.csv_rows import harmless
from tests.support.golden_stream import STREAM
from tests.taxtui.tui import story

SMALL: Final = Path(__file__).parents[3] / "recordings" / "small.msgpack"
GOLDEN: Final = Path(__file__).parents[2] / "taxtui" / "recording" / "golden.msgpack"


def exported(*words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


def cells(path: Path) -> list[Pool]:
    """Those of one file, as the cost model reads them."""
    found = costmodel.load(path)
    assert isinstance(found, Recording)
    return pools([found])


def same(row: dict[str, Any], text: dict[str, str]) -> bool:
    """Whether a line of CSV says what a row does."""
    return all(
        text[name] == ("" if value is None else str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in row.items()
    )


@pytest.mark.parametrize("path", [SMALL, GOLDEN], ids=["small", "golden"])
@pytest.mark.parametrize("table", TABLES)
def test_every_format_has_the_same_rows(path: Path, table: str, tmp_path: Path) -> None:
    names = [column.name for column in COLUMNS[table]]
    told = [dict(zip(names, row, strict=True)) for row in table_rows([path], table)]
    assert told
    assert costmodel.frame(path, table=table) == {name: [row[name] for row in told] for name in names}
    lines = exported(path, "--table", table, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == told
    text = list(csv.DictReader(io.StringIO(exported(path, "--table", table, "--format", "csv").stdout)))
    assert len(text) == len(told)
    assert all(map(same, told, text))
    out = tmp_path / "t.parquet"
    assert exported(path, "--table", table, "--format", "parquet", "-o", out).exit_code == 0
    read = pyarrow.parquet.read_table(out)
    assert read.to_pylist() == told
    assert read.schema.field(names[0]).metadata == {b"about": COLUMNS[table][0].about.encode()}


@pytest.mark.parametrize(
    ("name", "options", "beginning"),
    [
        ("t.parquet", [], b"PAR1"),
        ("t.PARQUET", ["--table", "actions"], b"PAR1"),
        ("t.jsonl", [], b'{"'),
        ("t.csv", [], b'"run_id",'),
        ("t", [], b'"run_id",'),
        ("t.prom", [], b"# "),
        ("t.jsonl", ["--format", "otlp"], b'{"resourceSpans"'),
        ("t.txt", ["--format", "prometheus"], b"# "),
    ],
)
def test_the_name_of_the_file_says_its_format(name: str, options: list[str], beginning: bytes, tmp_path: Path) -> None:
    done = exported(SMALL, *options, "-o", tmp_path / name)
    assert done.exit_code == 0, done.output
    assert (tmp_path / name).read_bytes().startswith(beginning)


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("t.parquet", ["--format", "csv"], "is a name for parquet, not for csv; drop --format csv, or rename it"),
        ("t.csv", ["--format", "otlp"], "is a name for csv, not for otlp"),
        ("t.xlsx", [], ".xlsx is the ending of no format; add --format"),
    ],
)
def test_a_name_that_says_another_format_is_refused(
    name: str, options: list[str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        exported(SMALL, *options, "-o", tmp_path / name)
    assert not (tmp_path / name).exists()


def test_trials_are_those_that_the_cost_model_reads() -> None:
    told = [dict(zip([c.name for c in COLUMNS["trials"]], row, strict=True)) for row in table_rows([SMALL])]
    counted = [row for row in told if not row["warm_up"] and row["outcome"] not in ("cancelled", "interrupted")]
    for cell in cells(SMALL):
        own = [row for row in counted if row["cell"] == cell.identity.cell_id]
        assert [row["held_ns"] for row in own] == [trial.measures.held_ns for trial in cell.trials]
        assert [row["work_ns"] for row in own] == [trial.measures.work_ns for trial in cell.trials]
        assert [row["actions"] for row in own] == [len(trial.durations_ns) for trial in cell.trials]


def test_spans_hold_the_instants_and_durations_of_the_recording(tmp_path: Path) -> None:
    told = [json.loads(line) for line in exported(GOLDEN, "--format", "otlp").stdout.splitlines()]
    trials = [one["resourceSpans"][0]["scopeSpans"][0]["spans"] for one in told]
    ends = [event for event in STREAM if type(event).__name__ == "TrialEnded"]
    assert len(trials) == len(ends)
    actions = {e.trial: [] for e in ends}  # type: ignore[var-annotated]
    for event in STREAM:
        if isinstance(event, Actions) and event.step == "action":
            actions[event.trial] += event.duration_ns
    for (root, *below), end in zip(trials, ends, strict=True):
        assert all(span["traceId"] == root["traceId"] and span["parentSpanId"] == root["spanId"] for span in below)
        assert len({span["spanId"] for span in [root, *below]}) == len(below) + 1
        tools = [span for span in below if span["name"] == "action command"]
        lasting = [int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) for span in tools]
        assert lasting == actions[end.trial]
        assert (root.get("status", {}).get("code") == 2) == (end.outcome != "ok")
    assert len({trial[0]["traceId"] for trial in trials}) == len(trials)


def test_a_suspension_does_not_move_the_commands_after_it(tmp_path: Path) -> None:
    path = tmp_path / "suspended.msgpack"
    plain = {"run_ns": [], "exit_code": [], "stdout_bytes": [], "stderr_bytes": []}
    with Recorder(path) as recorder:
        for event in (
            *STREAM[:3],
            TrialStarted(0, 0, "taxtui-g-0", 0, 0),
            PhaseEnded(0, "create", 0, 10),
            Actions(0, "action", 0, gap_ns=[], think_ns=[], duration_ns=[5], **plain),
            PhaseEnded(0, "suspend", 30, 5),
            PhaseEnded(0, "resume", 115, 5),
            Actions(0, "action", 1, gap_ns=[5], think_ns=[100], duration_ns=[5], **plain),
            TrialEnded(0, "ok", "", "", "", 125, 0, "warm"),
        ):
            recorder.add(event)
    [line] = exported(path, "--format", "otlp").stdout.splitlines()
    root, *below = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    began = int(root["startTimeUnixNano"])
    commands = [int(span["startTimeUnixNano"]) - began for span in below if span["name"] == "action command"]
    assert (commands, int(root["endTimeUnixNano"]) - began) == ([10, 120], 125)


def test_metrics_are_in_the_text_format_and_in_seconds() -> None:
    text = exported(SMALL, "--format", "prometheus").stdout
    sample = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? [0-9.e+-]+')
    comment = re.compile(r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ (gauge|summary))")
    assert all(sample.fullmatch(line) or comment.fullmatch(line) for line in text.splitlines())
    cell = cells(SMALL)[0]
    held = sum(trial.measures.held_ns for trial in cell.trials if trial.ok) / 1e9
    series = f'taxtui_held_seconds_sum{{cell="{cell.identity.cell_id}"'
    [line] = [one for one in text.splitlines() if one.startswith(series)]
    assert float(line.rpartition(" ")[2]) == held


@pytest.mark.parametrize("form", [name for name in NAMES if name != "parquet"])
def test_names_from_a_recording_steer_neither_a_terminal_nor_a_spreadsheet(form: str, tmp_path: Path) -> None:
    path = tmp_path / "r.msgpack"
    with Recorder(path) as recorder:
        for event in [story.header([]), story.clock(), story.cell(0, '=HYPERLINK("x")\x1b[31m'), *story.trial(0, 0, 0)]:
            recorder.add(event)
    text = exported(path, "--format", form).stdout
    assert "\x1b" not in text
    assert "HYPERLINK" in text
    assert "u001b" not in text
    if form == "csv":
        [row] = csv.DictReader(io.StringIO(text))
        assert row["substrate"].startswith("'=HYPERLINK")


def test_names_in_columns_are_clean_too(tmp_path: Path) -> None:
    path, out = tmp_path / "r.msgpack", tmp_path / "r.parquet"
    with Recorder(path) as recorder:
        for event in [story.header([]), story.clock(), story.cell(0, "\ta\x1b[31m"), *story.trial(0, 0, 0)]:
            recorder.add(event)
    exported(path, "--format", "parquet", "-o", out)
    assert pyarrow.parquet.read_table(out)["substrate"].to_pylist() == [
        "\N{REPLACEMENT CHARACTER}a\N{REPLACEMENT CHARACTER}[31m"
    ]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", " =1", "\N{FULLWIDTH EQUALS SIGN}1", "\t=1", "\r=1", "\n=1"])
def test_no_text_in_csv_begins_a_formula(text: str) -> None:
    told = harmless(text)
    assert told[0] not in "=+-@ \t\r\n"
    assert told[0] in "'\N{REPLACEMENT CHARACTER}"


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged, out = tmp_path / "damaged.msgpack", tmp_path / "out"
    data = bytearray(SMALL.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    for form in NAMES:
        with pytest.raises((costmodel.SourceError, RecordingError), match="damaged at byte"):
            exported(damaged, "--format", form, "-o", out)
        assert not out.exists()
    out.write_text("precious")
    with pytest.raises(UsageError, match="choose another name with -o"):
        exported(SMALL, "-o", out)
    assert out.read_text() == "precious"
    with pytest.raises(UsageError, match="cannot create"):
        exported(SMALL, "-o", tmp_path / "no" / "folder")


def test_what_cannot_be_asked_for_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--table does not go with --format otlp"):
        exported(SMALL, "--format", "otlp", "--table", "trials")
    with pytest.raises(costmodel.SourceError, match="there is no table 'x'; there are trials, actions"):
        costmodel.frame(SMALL, table="x")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=re.escape(f"parquet needs pyarrow; {installed.extra_command('export')}")):
        exported(SMALL, "--format", "parquet", "-o", tmp_path / "x")
