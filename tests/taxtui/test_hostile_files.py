"""Files that an enemy has put where recordings, logs and scenarios lie: refused in one line, and no pipe blocks."""

from __future__ import annotations

import json
import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import costmodel
from costmodel.errors import CostModelError, SourceError
from costmodel.regular_file import open_regular, read_regular
from taxtui.cli import app
from taxtui.errors import RecordingError, TaxtuiError, UsageError
from taxtui.importers import files, registry, zipped
from taxtui.importers.files import Unreadable
from taxtui.importers.importing import import_files
from taxtui.importers.protocol import ReaderOptions
from taxtui.plan import arrivals
from taxtui.plan.notation import parse_images
from taxtui.runner.fanout.resume import ResumeState
from taxtui.tui.setup.form import presets
from tests.support.fuzz import hostile
from tests.support.importing import FORMATS, SAMPLES, sample_files

DEMAND = ("--trajectories", "1000", "--workers", "10")
GOLDEN = str(hostile.GOLDEN)
NOT_REGULAR = "not a regular file"


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/null")  # a test that fails should not fill the memory, as /dev/zero would


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket may have 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(here)


def refusal(*words: str) -> str:
    """The one line with which a command ends."""
    done = CliRunner().invoke(app, words, standalone_mode=False)
    if done.return_value == RecordingError.exit_code:  # of several files: told by then
        [line] = done.output.splitlines()
        return line
    assert isinstance(done.exception, TaxtuiError | CostModelError), (done.exception, done.output)
    assert "\n" not in str(done.exception)
    return str(done.exception)


@pytest.mark.parametrize("make", [a_pipe, a_device, a_socket])
def test_only_regular_files_are_opened(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x")
    for refused in (lambda path: open_regular(path), lambda path: read_regular(path, 10)):
        with pytest.raises(OSError, match=NOT_REGULAR) as raised:
            refused(tmp_path / "x")
        assert raised.value.strerror is not None
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "y")


def test_a_link_to_a_regular_file_is_followed_and_its_size_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 10) == b"0123456789"
    with pytest.raises(OSError, match="larger than 0 MiB"):
        read_regular(tmp_path / "link", 9)
    assert read_regular(Path("/dev/fd") / str(os.open(tmp_path / "file", os.O_RDONLY)), 10) == b"0123456789"


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_a_file_without_a_size_is_read_up_to_its_limit() -> None:
    assert Path("/proc/self/maps").stat().st_size == 0
    with pytest.raises(OSError, match="larger than"):
        read_regular(Path("/proc/self/maps"), 100)


@pytest.mark.parametrize("make", [a_pipe, a_device])
@pytest.mark.parametrize(
    "words",
    [
        ("report", "FILE"),
        ("compare", GOLDEN, "FILE"),
        ("project", "FILE", *DEMAND),
        ("compare", "FILE", GOLDEN),
        ("export", "FILE", "--format", "csv", "-o", "OUT"),
        ("compare", GOLDEN, "FILE", "--fail-above", "10%"),
        ("recordings", "info", "FILE"),
        ("recordings", "verify", "FILE"),
        ("recordings", "verify", "FILE", "--salvage", "OUT"),
        ("tier", "from-trajectory", "FILE"),
        ("recordings", "compact", "FILE", "-o", "OUT"),
        ("run", "SCENARIO"),
    ],
)
def test_every_command_refuses_what_is_no_regular_file(
    make: Callable[[Path], None], words: tuple[str, ...], tmp_path: Path
) -> None:
    make(tmp_path / "x.msgpack")
    scenario = tmp_path / "s.toml"
    scenario.write_text('[[cells]]\nsubstrates = ["fake"]\ntiers = ["T0"]\nactions = [1]\narrival = "open:x.msgpack"\n')
    places = {"FILE": str(tmp_path / "x.msgpack"), "OUT": str(tmp_path / "out"), "SCENARIO": str(scenario)}
    assert NOT_REGULAR in refusal(*(places.get(word, word) for word in words))
    assert not (tmp_path / "out").exists()
    with pytest.raises(SourceError, match=NOT_REGULAR):
        ResumeState(tmp_path / "x.msgpack")


@pytest.mark.parametrize("make", [a_pipe, a_device])
def test_a_site_leaves_out_what_is_no_regular_file_or_refuses_it(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.msgpack").write_bytes(hostile.GOLDEN.read_bytes())
    make(tmp_path / "logs" / "x.msgpack")
    done = CliRunner().invoke(app, ["site", str(tmp_path / "logs"), "-o", str(tmp_path / "out")], standalone_mode=False)
    assert done.exception is None or isinstance(done.exception, TaxtuiError | CostModelError)
    assert NOT_REGULAR in f"{done.output}{done.exception}"


@pytest.mark.parametrize("make", [a_pipe, a_device])
@pytest.mark.parametrize("name", FORMATS)
def test_every_importer_refuses_what_is_no_regular_file(
    make: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    path, _ = next(iter(sample_files(name)))
    make(tmp_path / path.name)
    with pytest.raises(TaxtuiError, match=NOT_REGULAR):
        import_files(registry.load(name), [tmp_path / path.name], tmp_path / "out", ReaderOptions())
    assert "has an unknown format" in refusal("import", str(tmp_path / path.name), "-o", str(tmp_path / "out"))


def test_the_setup_screen_waits_for_no_pipe(tmp_path: Path) -> None:
    before = presets(tmp_path)
    os.mkfifo(tmp_path / "x.toml")
    assert presets(tmp_path) == before


@pytest.mark.parametrize("parse", [lambda path: arrivals.parse(f"open:{path}"), lambda path: parse_images(str(path))])
def test_a_complaint_about_a_line_does_not_quote_it(parse: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("root:$6$hash:19000\n")
    (tmp_path / "x.txt").symlink_to("secret")
    with pytest.raises(UsageError, match=r"x\.txt:1: the line ") as raised:
        parse(tmp_path / "x.txt")
    assert "hash" not in str(raised.value)


# -- what small files may cost -----------------------------------------------------------------------------------


def log(path: Path, *members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {}}')
        for number, member in enumerate(members):
            archive.writestr(f"samples/{number}.json", member)
    return path


def reasons(name: str, path: Path) -> str:
    with pytest.raises(TaxtuiError) as raised:
        import_files(registry.load(name), [path], path.with_suffix(".out"), ReaderOptions(), strict=True)
    return str(raised.value)


@pytest.mark.parametrize("element", ["[]", "{}", '"a"', "0"])
def test_a_document_of_too_many_values_is_not_decoded(
    element: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = ",".join([element] * (files.MOST_VALUES + 1))
    monkeypatch.setattr(files, "_decode", lambda _: pytest.fail("it was decoded"))
    (tmp_path / "x.traj").write_text(f'{{"trajectory": [{many}]}}')
    assert "more than 2,000,000 JSON values" in reasons("swe-agent", tmp_path / "x.traj")
    (tmp_path / "traces.jsonl").write_text(f'{{"traces": [{many}]}}\n')
    assert "line 1: more than 2,000,000 JSON values" in reasons("verifiers", tmp_path / "traces.jsonl")


def test_the_commas_and_brackets_of_a_text_are_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_VALUES", 100)
    told = {"output": ['[{,"\\' * 200, "\\" * 3, "{" * 200]}
    assert files.decoded(json.dumps(told)) == told
    with pytest.raises(Unreadable, match="more than 100 JSON values"):
        files.decoded(json.dumps({**told, "more": [0] * 101}))


def test_what_is_too_large_is_said_with_the_limit_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (SAMPLES.parent.parent / "logs" / "verifiers-given.jsonl").read_bytes().splitlines()[0]
    monkeypatch.setattr(files, "MOST_BYTES", len(line) + 1)
    monkeypatch.setattr(files, "MOST_SKIPPED", 10)
    (tmp_path / "traces.jsonl").write_bytes(b'{"a": "' + b"x" * len(line) * 2 + b'"}\n' + line + b"\n")
    done = import_files(registry.load("verifiers"), [tmp_path], tmp_path / "out", ReaderOptions())
    assert (done.trials, done.skipped) == (1, 1)
    assert "line 1: larger than" in done.named[0]
    (tmp_path / "x.traj").write_bytes(b" " * (len(line) + 2))
    assert "larger than" in reasons("swe-agent", tmp_path / "x.traj")


def test_a_member_that_unpacks_to_too_much_is_left_out(tmp_path: Path) -> None:
    path = log(tmp_path / "x.eval", " " * (files.MOST_BYTES + 1))
    assert path.stat().st_size < 100_000
    assert "sample 1: a member is larger than 32 MiB" in reasons("inspect", path)
    path.write_bytes(path.read_bytes().replace((files.MOST_BYTES + 1).to_bytes(4, "little"), (9).to_bytes(4, "little")))
    assert "sample 1: a member is damaged" in reasons("inspect", path)  # it lies about its size


def test_an_archive_that_unpacks_to_too_much_in_all_is_read_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipped, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(zipped, "MOST_RATIO", 1)
    sample = json.dumps({"started_at": "2026-01-01T00:00:00+00:00", "input": " " * 500_000})
    path = log(tmp_path / "x.eval", *[sample] * 9)
    done = import_files(registry.load("inspect"), [path], tmp_path / "out", ReaderOptions())
    assert (done.trials, done.skipped) == (3, 1)
    assert "more than 1 MiB unpacked" in done.named[0]


def test_other_compressions_are_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.eval", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("samples/1.json", "{}")
    assert "unknown compression" in reasons("inspect", tmp_path / "x.eval")


def test_rows_of_one_trial_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taxtui.importers.formats.csv_rows.MOST_ROWS", 3)
    path = tmp_path / "x.csv"
    path.write_text("trial,phase,duration_s\n" + "a,action,1\n" * 4 + "b,action,1\n" * 3)
    done = import_files(registry.load("csv"), [path], tmp_path / "out", ReaderOptions())
    assert (done.trials, done.skipped) == (1, 1)
    assert done.named[0].endswith("line 2: the trial has more than 3 rows")


def test_a_line_of_csv_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taxtui.importers.formats.csv_rows.MOST_LINE", 100)
    (tmp_path / "x.csv").write_text("trial,phase,duration_s\n" + "a," * 60 + "\n")
    assert "line 2 has more than 100 characters" in reasons("csv", tmp_path / "x.csv")


def test_of_a_log_only_the_sample_that_was_asked_for_is_unpacked(tmp_path: Path) -> None:
    path = log(tmp_path / "x.eval", "{broken", '{"events": []}')
    assert "log has no commands" in refusal("tier", "from-trajectory", str(path), "--trial", "2")
    assert "holds 2 trajectories" in refusal("tier", "from-trajectory", str(path), "--trial", "3")


def test_a_recording_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "x.msgpack").symlink_to(hostile.GOLDEN)
    assert costmodel.load(tmp_path / "x.msgpack").trials == costmodel.load(hostile.GOLDEN).trials  # type: ignore[union-attr]
