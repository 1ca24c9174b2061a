"""Files of other tools become one recording: found, guessed, skipped with a reason, ordered, under digests."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from costmodel.recording import events as ev
from taxtui.commands.importing import command
from taxtui.errors import RecordingError, TaxtuiError
from taxtui.importers import files, registry, zipped
from taxtui.importers.files import Unreadable
from taxtui.importers.formats import csv_rows
from taxtui.importers.importing import import_files, reader_for
from taxtui.importers.names import Names
from taxtui.importers.timeline import BACKWARDS, EARLY, LATE, OVERLAP, UNFIT, Timeline
from taxtui.importers.trial import Unknown
from tests.support.command_line import printed
from tests.support.importing import (
    FORMATS,
    LOG_FILES,
    LOGS,
    SAMPLES,
    SOURCES,
    actions_s,
    events_of,
    imported,
    of,
    sample_files,
    starts,
)

HARBOR = SAMPLES / "harbor"


def copies(folder: Path, count: int) -> Path:
    for number in range(count):
        shutil.copytree(HARBOR / "job" / "chat__1", folder / f"t{number}")
    return folder


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_is_guessed_from_the_content_and_the_same_source_is_the_same_recording(
    name: str, tmp_path: Path
) -> None:
    assert reader_for(None, [SAMPLES / name]).name == name
    assert not [path for path, _ in sample_files(name) if name in path.parts]
    for out in ("one", "other"):
        imported(name, SAMPLES / name, tmp_path / out)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_broken_file_among_many_is_left_out_counted_and_named(tmp_path: Path) -> None:
    folder = copies(tmp_path / "job", 5)
    (folder / "t3" / "result.json").write_text('{"trial_name": "t", "agent_inf')
    result, events = imported("harbor", folder, tmp_path / "out")
    assert (result.trials, result.skipped) == (4, 1)
    assert result.named == [f"{folder / 't3' / 'result.json'}: no JSON, or cut off"]
    assert "1 files or parts of files left out" in [notice.text for notice in of(events, ev.Notice)]
    with pytest.raises(RecordingError, match=r"t3/result\.json: no JSON"):
        imported("harbor", folder, tmp_path / "strict", strict=True)
    assert not (tmp_path / "strict").exists()
    (folder / "result.json").symlink_to("result.json")
    result, _ = imported("harbor", folder, tmp_path / "link")
    assert (result.trials, result.skipped) == (4, 2)
    assert "not readable: Too many levels of symbolic links" in result.named[0]


def test_trials_stand_in_the_order_of_time_in_flight_is_counted_and_long_ones_fit_the_frames(tmp_path: Path) -> None:
    rows = ["trial,phase,start,end"]
    rows += [f"{name},action,{1795297000 + at},{1795297000 + at + 10}" for name, at in (("c", 30), ("a", 0), ("b", 5))]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    _, events = imported("csv", tmp_path / "a.csv", tmp_path / "out")
    assert [start.start_ns for start in starts(events)] == [0, 5 * 10**9, 30 * 10**9]
    assert [cell.concurrency for cell in of(events, ev.Cell)] == [2]
    told = [
        event.end_ns if isinstance(event, ev.TrialEnded) else event.start_ns
        for event in events[3:-1]
        if isinstance(event, ev.TrialStarted | ev.TrialEnded)
    ]
    assert told == sorted(told)
    (tmp_path / "b.csv").write_text("trial,phase,duration_s\na,action,2\nb,action,3\n")
    _, events = imported("csv", tmp_path / "b.csv", tmp_path / "undated")
    assert [start.start_ns for start in starts(events)] == [0, 2 * 10**9]
    assert [cell.concurrency for cell in of(events, ev.Cell)] == [0], "nobody told"
    long = "".join(f"a,action,{number / 1e6}\n" for number in range(10_000))
    (tmp_path / "b.csv").write_text("trial,phase,duration_s\n" + long)
    _, events = imported("csv", tmp_path / "b.csv", tmp_path / "long")
    assert [len(event.duration_ns) for event in of(events, ev.Actions)] == [8192, 1808]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("{job} -o {job}/result.json", 2, "exists; choose another name"),
        ("{job} -o {tmp}/no/such/out", 2, "there is no such folder"),
        ("harbour {job} -o {tmp}/out", 2, "'harbour' is no format and no file; did you mean 'harbor'?"),
        ("{tmp}/none -o {tmp}/out", 2, "there is no "),
        ("{tmp}/empty -o {tmp}/out", 2, "has an unknown format"),
        ("harbor {tmp}/empty -o {tmp}/out", 4, "no file here can be harbor's"),
        ("harbor {tmp}/foreign -o {tmp}/out", 4, "nothing could be read of 1 file, first "),
        ("harbor {job} --map a=create -o {tmp}/out", 2, "harbor has no spans: drop --map"),
        ("otlp {job} --map a=b -o {tmp}/out", 2, "--map a=b: not NAME=PHASE; PHASE is one of"),
        ("otlp {job} --map a=create --map a=ready -o {tmp}/out", 2, "--map a is create and ready"),
    ],
)
def test_what_cannot_work_is_refused_in_a_line(tmp_path: Path, words: str, code: int, told: str) -> None:
    job = copies(tmp_path / "job", 1) / "t0"
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "result.json").write_text("[1, 2]")
    assert told in printed("import", *words.format(job=job, tmp=tmp_path).split(), code=code)
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    twice = [str(HARBOR), str(HARBOR / "job" / "chat__1")]
    ran = CliRunner().invoke(command, [*twice, "-o", str(tmp_path / "out")], catch_exceptions=False)
    assert ran.exit_code == 0
    assert ran.stdout == "", "stdout is data"
    assert f"{tmp_path / 'out'}: 3 trials of harbor from 4 files (3 ok)" in ran.stderr
    assert "  run unknown: dispatch and command time are undivided\n" in ran.stderr
    assert events_of(tmp_path / "out")


LAPS: Final = """
from taxtui.importers.files import lines, walk
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import ImportedTrial
from taxtui.importers.values import duration_ns


class LapsReader:
    name = "laps"

    def files(self, folder):
        return walk(folder, lambda name: name.endswith(".laps"))

    def recognises(self, path, head):
        return head.startswith(b"laps")

    def trials(self, path):
        for number, line in lines(path):
            timeline = Timeline(0)
            for word in line.split()[1:]:
                timeline.append("action", duration_ns(float(word)))
            yield ImportedTrial(**timeline.times(), dated=False, resolution_ns=10_000_000)
"""


@pytest.mark.parametrize("missing", [False, True])
def test_a_third_party_reader_needs_an_entry_point_and_its_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    module = f"third_party_laps_{missing}".lower()
    folder = tmp_path / module  # pytest uses the name of a test's folder again
    package = folder / "laps-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: laps\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[taxtui.importers]\nlaps = {module}:LapsReader\n")
    (folder / f"{module}.py").write_text("import no_such_module\n" * missing + LAPS)
    monkeypatch.syspath_prepend(folder)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.laps").write_text("laps 1.5 0.5\nlaps 2\n")
    words = [str(tmp_path / "logs"), "-o", str(tmp_path / "out")]
    if missing:
        ran = CliRunner().invoke(command, words)
        assert isinstance(ran.exception, TaxtuiError)
        told = f"laps: the module 'no_such_module' is not installed; install the imports of {module}:LapsReader"
        assert str(ran.exception) == told
        return
    ran = CliRunner().invoke(command, words, catch_exceptions=False)
    assert "2 trials of laps" in ran.stderr
    assert actions_s(events_of(tmp_path / "out"), 0) == [1.5, 0.5]
    ran = CliRunner().invoke(command, [*words, "--map", "a=create"])
    assert "laps has no spans" in str(ran.exception)


def test_an_interrupt_leaves_no_file_and_an_error_of_a_reader_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("taxtui.importers.writing._events", interrupt)
    with pytest.raises(KeyboardInterrupt):
        imported("harbor", HARBOR, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("taxtui.importers.formats.harbor.HarborReader.trials", lambda *_: 1 / 0)
    with pytest.raises(RecordingError, match=r"unexpected ZeroDivisionError \(test_importing\.py:\d+\): report the"):
        imported("harbor", HARBOR, tmp_path / "out")


def test_a_timeline_counts_nothing_twice_and_nothing_backwards() -> None:
    timeline = Timeline(100)
    timeline.add(ev.CREATE, 100, 200)
    timeline.add(ev.SETUP, 150, 260)  # overlaps
    timeline.add("think", 260, 300)
    timeline.add("action", 300, 400)
    timeline.add("action", 310, 450, run_ns=20)  # side by side
    timeline.add("action", 500, 480)
    timeline.add("think", 450, 900)  # leads to nothing
    times = timeline.times()
    assert [(phase.name, phase.start_ns, phase.duration_ns) for phase in times["phases"]] == [
        ("create", 100, 100),
        ("setup", 200, 60),
    ]
    assert times["actions"] == ((100, 40, 0, -1, -1), (50, 0, 0, -1, -1))
    assert (times["start_ns"], times["end_ns"]) == (100, 450)
    assert times["unknown"] == (
        Unknown("actions", BACKWARDS, partly=True),
        Unknown("setup", LATE, partly=True),
        Unknown("actions", OVERLAP, partly=True),
        Unknown("run", UNFIT, partly=True),
    )


CUTS: Final = [
    ("create 0-1 think 1-2 action 2-5 create 6-7 action 8-9", {"create": 1}, [(3, 1, 0), (1, 0, 3)], {"create": LATE}),
    ("think 0-8 create 8-10 action 10-11", {"create": 2}, [(1, 8, 0)], {}),
    ("think 0-8 create 5-12 action 10-11", {"create": 5}, [(1, 5, 0)], {"create": LATE, "think": OVERLAP}),
    ("think 0-9 action 3-5 action 12-13", {}, [(2, 3, 0), (1, 4, 3)], {"think": OVERLAP}),
    ("action 0-5 verify 5-8 action 9-10 verify 9-12", {"verify": 2}, [(5, 0, 0), (1, 0, 4)], {"verify": EARLY}),
]


@pytest.mark.parametrize(("spans", "phases", "actions", "cuts"), CUTS)
def test_no_phase_takes_the_time_of_a_command_and_each_cut_is_reported(
    spans: str, phases: dict[str, int], actions: list[tuple[int, int, int]], cuts: dict[str, str]
) -> None:
    timeline = Timeline()
    for kind, ends in zip(spans.split()[::2], spans.split()[1::2], strict=True):
        timeline.add(kind, *map(int, ends.split("-")))
    times = timeline.times()
    assert {phase.name: phase.duration_ns for phase in times["phases"]} == phases
    assert [action[:3] for action in times["actions"]] == actions
    assert {each.quantity: each.why for each in times["unknown"]} == cuts


@pytest.mark.parametrize("keep_names", [False, True])
@pytest.mark.parametrize("name", [*FORMATS, *LOG_FILES, "swe-agent"])
def test_canaries_never_reach_the_recording(tmp_path: Path, name: str, keep_names: bool) -> None:
    """Secrets, prompts, commands and paths in every string of every source."""
    folder = tmp_path / "source"
    for source, data in SOURCES.items():
        if source.partition("/")[0] == name and not source.endswith(".eval"):
            path = folder / source.partition("/")[2]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_poisoned(path, data))
    paths = [path for path in folder.rglob("*") if path.is_file()] if name in LOG_FILES else [folder]
    result = import_files(registry.load(name), paths, tmp_path / "out.msgpack", keep_names=keep_names)
    assert not result.skipped, result.named
    assert "CANARY" not in repr(result)
    assert b"canary" not in (tmp_path / "out.msgpack").read_bytes().lower()


def _poisoned(path: Path, data: bytes) -> bytes:
    if path.suffix == ".csv":
        head, *rows = data.decode().splitlines()
        return "\n".join([f"{head},prompt", *(f"{row},sk-CANARY" for row in rows)]).replace("fix", "CANARY x").encode()
    lines = [json.loads(line) for line in (data.splitlines() if path.suffix == ".jsonl" else [data])]
    return b"\n".join(json.dumps(_with_canaries(line)).encode() for line in lines)


KEPT = (
    *("started_at", "finished_at", "timestamp", "role", "source", "event", "type", "key", "format", "operation", "at"),
    *("config", "completed"),
)
MEANINGS = {"chat", "execute_tool", "invoke_agent", "agent", "unset", "sequential", "staggered", "burst", *"1234567"}
"""Values, and numbers of spans, with a meaning for a reader."""


def _with_canaries(value: object, key: str = "") -> object:
    """Add a secret to each text without a meaning for a reader, and add unknown keys."""
    if isinstance(value, dict):
        return {name: _with_canaries(item, name) for name, item in value.items()} | {
            "api_key": "sk-CANARY",
            "prompt": "CANARY fix it",
            "command": "cat /home/CANARY/.ssh/id",
        }
    if isinstance(value, list):
        return [_with_canaries(item, key) for item in value]
    if isinstance(value, str) and not any(part in key for part in KEPT) and not value.startswith(("20", "17")):
        return value if value in MEANINGS else f"{value} /home/CANARY sk-CANARY"
    return value


@pytest.mark.parametrize("half", ["\ud800", "\\ud800"], ids=["as it is", "escaped"])
def test_half_a_character_is_read_or_refused_and_ends_no_encoder(half: str) -> None:
    assert files.decoded(f'{{"said": "{half}"}}') == {"said": "\ud800"}
    with pytest.raises(Unreadable, match=files.BROKEN):
        files.decoded(f'{{"said": "{half}')


def log(path: Path, *members: str, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("header.json", '{"eval": {}}')
        for number, member in enumerate(members):
            archive.writestr(f"samples/{number}.json", member)
    return path


def reasons(name: str, path: Path) -> str:
    with pytest.raises(TaxtuiError) as raised:
        import_files(registry.load(name), [path], path.with_suffix(".out"), strict=True)
    return str(raised.value)


@pytest.mark.parametrize("element", ["[]", '"a"'])
def test_a_document_of_too_many_values_is_not_decoded(
    element: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_VALUES", 100)
    monkeypatch.setattr(files, "_decode", lambda _: pytest.fail("it was decoded"))
    many = ",".join([element] * 101)
    (tmp_path / "x.traj").write_text(f'{{"trajectory": [{many}]}}')
    assert "more than 100 JSON values" in reasons("swe-agent", tmp_path / "x.traj")
    (tmp_path / "traces.jsonl").write_text(f'{{"traces": [{many}]}}\n')
    assert "line 1: more than 100 JSON values" in reasons("verifiers", tmp_path / "traces.jsonl")
    monkeypatch.undo()
    monkeypatch.setattr(files, "MOST_VALUES", 100)
    told = {"output": ['[{,"\\' * 200, "\\" * 3, "{" * 200]}
    assert files.decoded(json.dumps(told)) == told, "commas and brackets of a text are no values"
    with pytest.raises(Unreadable, match="more than 100 JSON values"):
        files.decoded(json.dumps({**told, "more": [0] * 101}))


def test_what_is_too_large_is_said_with_the_limit_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (LOGS / "verifiers-given.jsonl").read_bytes().splitlines()[0]
    monkeypatch.setattr(files, "MOST_BYTES", len(line) + 1)
    monkeypatch.setattr(files, "MOST_SKIPPED", 10)
    (tmp_path / "traces.jsonl").write_bytes(b'{"a": "' + b"x" * len(line) * 2 + b'"}\n' + line + b"\n")
    done = import_files(registry.load("verifiers"), [tmp_path], tmp_path / "out")
    assert (done.trials, done.skipped) == (1, 1)
    assert "line 1: larger than" in done.named[0]
    (tmp_path / "x.traj").write_bytes(b" " * (len(line) + 2))
    assert "larger than" in reasons("swe-agent", tmp_path / "x.traj")


def test_a_member_that_unpacks_to_too_much_is_left_out_and_an_archive_read_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log(tmp_path / "x.eval", " " * (files.MOST_BYTES + 1))
    assert path.stat().st_size < 100_000
    assert "sample 1: a member is larger than 32 MiB" in reasons("inspect", path)
    path.write_bytes(path.read_bytes().replace((files.MOST_BYTES + 1).to_bytes(4, "little"), (9).to_bytes(4, "little")))
    assert "sample 1: a member is damaged" in reasons("inspect", path)  # it lies about its size
    other = log(tmp_path / "y.eval", "{}", compression=zipfile.ZIP_BZIP2)
    assert "unknown compression" in reasons("inspect", other)
    monkeypatch.setattr(zipped, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(zipped, "MOST_RATIO", 1)
    sample = json.dumps({"started_at": "2026-01-01T00:00:00+00:00", "input": " " * 500_000})
    path = log(tmp_path / "x.eval", *[sample] * 9)
    done = import_files(registry.load("inspect"), [path], tmp_path / "out")
    assert (done.trials, done.skipped) == (3, 1)
    assert "more than 1 MiB unpacked" in done.named[0]


def test_rows_of_a_trial_and_lines_of_csv_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("trial,phase,duration_s\n" + "a,action,1\n" * 4 + "b,action,1\n" * 3)
    monkeypatch.setattr(csv_rows, "MOST_ROWS", 3)
    result = import_files(registry.load("csv"), [path], tmp_path / "out")
    assert (result.trials, result.skipped) == (1, 1)
    assert result.named[0].endswith("line 2: the trial has more than 3 rows")
    for module in (files, csv_rows):
        monkeypatch.setattr(module, "MOST_BYTES", 100)
    monkeypatch.setattr(csv, "field_size_limit", lambda limit: None)  # it is the whole process's
    path.write_text("trial,phase,duration_s\n" + "a," * 60 + "\n")
    assert "line 2 is larger than" in reasons("csv", path)


def test_names_are_digests_unless_they_are_kept(tmp_path: Path) -> None:
    away, kept = Names(keep=False), Names(keep=True)
    _, events = imported("csv", SAMPLES / "csv", tmp_path / "out")
    assert starts(events)[0].task == away.of("fix")
    assert away.of("django__django-1") not in ("", "django__django-1")
    assert kept.of("swebench/x86.django_1:latest") == "swebench/x86.django_1:latest"
    for secret in ("/home/me/task", "fix the bug", "https://u:p@host/x", "a/../x", "a" * 121, "~/x", "a\nb"):
        assert kept.of(secret) not in ("", secret)
    assert (away.substrate("Docker"), away.substrate("")) == ("docker", "unknown")
    assert away.substrate("my.module:Environment") != "my.module:Environment"
    assert away.error("harbor.errors.AgentTimeoutError") == "harbor.errors.AgentTimeoutError"
    assert "secret" not in away.error("the secret is 1234")
