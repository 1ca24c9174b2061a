"""Pipes, devices, mangled files and names: refused in one line or shown as text; no pipe blocks."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import costmodel
from costmodel.errors import CostModelError, SourceError
from costmodel.regular_file import open_regular, read_regular
from taxtui.cli import app
from taxtui.commands import clean, run
from taxtui.errors import RecordingError, TaxtuiError, UsageError
from taxtui.importers import registry
from taxtui.importers.importing import import_files
from taxtui.live import catalogue
from taxtui.runner.fanout.resume import ResumeState
from taxtui.sandboxes.conformance import __main__ as conformance
from taxtui.sandboxes.protocol import Availability
from taxtui.substrates.local.substrate import LocalSubstrate
from taxtui.terminal_text import UNPRINTABLE
from taxtui.tui.live.replay import ReplayFeed
from tests.support.command_line import printed
from tests.support.fuzz import hostile
from tests.support.fuzz.fuzzing import TARGETS, corpus, made, tried
from tests.support.importing import FORMATS, sample_files

DEMAND = ("--trajectories", "1000", "--workers", "10")
GOLDEN = str(hostile.GOLDEN)
NOT_REGULAR = "not a regular file"


def a_device(path: Path) -> None:
    path.symlink_to("/dev/null")  # a test that fails should not fill the memory, as /dev/zero would


def a_socket(path: Path) -> None:
    # The path of a socket may have 108 bytes.
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path.name)


def refusal(*words: str) -> str:
    done = CliRunner().invoke(app, words, standalone_mode=False)
    if done.return_value == RecordingError.exit_code:  # of several files: told by then
        [line] = done.output.splitlines()
        return line
    assert isinstance(done.exception, TaxtuiError | CostModelError), (done.exception, done.output)
    assert "\n" not in str(done.exception)
    return str(done.exception)


@pytest.mark.parametrize("make", [os.mkfifo, a_device, a_socket])
def test_only_regular_files_are_opened(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x")
    for refused in (lambda path: open_regular(path), lambda path: read_regular(path, 10)):
        with pytest.raises(OSError, match=NOT_REGULAR) as raised:
            refused(tmp_path / "x")
        assert raised.value.strerror is not None


def test_a_link_is_followed_and_the_size_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 10) == b"0123456789"
    (tmp_path / "x.msgpack").symlink_to(hostile.GOLDEN)
    assert costmodel.load(tmp_path / "x.msgpack").trials == costmodel.load(hostile.GOLDEN).trials  # type: ignore[union-attr]
    with pytest.raises(OSError, match="larger than 0 MiB"):
        read_regular(tmp_path / "link", 9)
    with pytest.raises(OSError, match="larger than"):
        read_regular(Path("/proc/self/maps"), 100)  # its size is 0 by stat


@pytest.mark.parametrize(
    "words",
    [
        ("report", "FILE"),
        ("project", "FILE", *DEMAND),
        ("compare", "FILE", GOLDEN),
        ("compare", GOLDEN, "FILE"),
        ("export", "FILE", "--format", "csv", "-o", "OUT"),
        ("recordings", "info", "FILE"),
        ("recordings", "verify", "FILE"),
    ],
)
def test_every_command_refuses_what_is_no_regular_file(words: tuple[str, ...], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.msgpack")
    places = {"FILE": str(tmp_path / "x.msgpack"), "OUT": str(tmp_path / "out")}
    assert NOT_REGULAR in refusal(*(places.get(word, word) for word in words))
    assert not (tmp_path / "out").exists()
    with pytest.raises(SourceError, match=NOT_REGULAR):
        ResumeState(tmp_path / "x.msgpack")


def test_a_site_leaves_out_what_is_no_regular_file_or_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taxtui.report.page.content.inline_svg", lambda panel: "")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.msgpack").write_bytes(hostile.GOLDEN.read_bytes())
    os.mkfifo(tmp_path / "logs" / "x.msgpack")
    done = CliRunner().invoke(app, ["site", str(tmp_path / "logs"), "-o", str(tmp_path / "out")], standalone_mode=False)
    assert done.exception is None or isinstance(done.exception, TaxtuiError | CostModelError)
    assert NOT_REGULAR in f"{done.output}{done.exception}"


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", [*FORMATS, "inspect"])
def test_every_importer_refuses_what_is_no_regular_file(name: str, tmp_path: Path) -> None:
    path = Path("x.eval") if name == "inspect" else next(iter(sample_files(name)))[0]
    os.mkfifo(tmp_path / path.name)
    with pytest.raises(TaxtuiError, match=NOT_REGULAR):
        import_files(registry.load(name), [tmp_path / path.name], tmp_path / "out")
    assert "has an unknown format" in refusal("import", str(tmp_path / path.name), "-o", str(tmp_path / "out"))


PROJECT = ("project", "small.msgpack", "--trajectories", "64", "--workers", "8")
DECIDE = ("decide", "small.msgpack", "--to", "daytona", "--from", "local")
RUN = ("run", "-s", "local", "-t", "T0", "--dry-run")


def test_compare_writes_into_no_recording_and_no_file_twice(tmp_path: Path) -> None:
    path, link = tmp_path / "c.msgpack", tmp_path / "link"
    path.write_bytes(hostile.GOLDEN.read_bytes())
    words = ("compare", "small.msgpack", "run.msgpack", "--fail-above", "90%")
    assert "is no text" in refusal(*words, "--summary", str(path))
    assert "is no XML" in refusal(*words, "--junit", str(path))
    assert "uses this file" in refusal(*words, "--pool-after", str(path), "--summary", str(path))
    assert "uses this file" in refusal(*words, "--junit", "x", "--summary", "./x")
    assert path.read_bytes() == hostile.GOLDEN.read_bytes()
    link.symlink_to("nowhere")
    assert "link exists" in refusal(*DECIDE, "-o", str(link))


def test_a_chart_of_nothing_is_left_out() -> None:
    result = CliRunner().invoke(app, [*PROJECT, "--batch", "16", "--gpus", "8", "--set", "gpu_usd_hour=0"])
    assert result.exit_code == 0, result.exception


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ((*PROJECT, "--set", "train_s=1e308"), "train_s must be a number of at least 0 (0 to 9.2e+09)"),
        ((*PROJECT, "--compose", "e2b:slowdown=1e308"), "slowdown must be a factor above 0"),
        ((*PROJECT, "--tier", "T1", "--set", "tier=T9"), "--tier and --set tier are both given"),
        ((*DECIDE, "-o", "same", "--html", "./same"), "name two files"),
        ((*DECIDE, "--length", "10", "-n", "10"), "-n chooses nothing"),
        ((*DECIDE, "--compose", "e2b"), "--compose e2b is not --to daytona"),
        ((*DECIDE, "--to", "local:bwrap"), "both local"),
        ((*RUN, "--repeat", "1e9"), "more than 10,000,000 trials"),
        ((*RUN, "--resume", "/dev/null"), "not a regular file"),
        ((*RUN, "--acquire", "nosuch"), "cannot acquire sandboxes by 'nosuch'"),
        ((*RUN, "-s", "nosuch"), "unknown substrate 'nosuch'"),
        (("clean", "--run", "../.."), "run id is not valid"),
    ],
)
def test_wrong_values_and_pairs(command: tuple[str, ...], complaint: str) -> None:
    assert complaint in refusal(*command)


SEED = 20
EACH = {"importers": 250, "documents": 80, "projections": 60}
EXECUTIONS = 600
"""Of a target that is in memory."""
FOUND = list(corpus())


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_mangled_file_is_taken_or_refused_in_one_line(target: str) -> None:
    told: Counter[str] = Counter()
    for number in range(EACH.get(target, EXECUTIONS)):
        word, why = tried(target, made(target, SEED, number))
        assert not why, f"python -m tests.support.fuzz.fuzzing --target {target} --seed {SEED} --number {number}: {why}"
        told[word] += 1
    assert len(told) > 1 or target == "text", "it is never taken, or never refused"


@pytest.mark.parametrize(("target", "path"), FOUND, ids=[f"{target}-{path.stem}" for target, path in FOUND])
def test_what_once_failed_fails_no_more(target: str, path: Path) -> None:
    assert tried(target, path.read_bytes())[1] == ""


COMMANDS = (
    ("recordings", "info", "FILE"),
    ("recordings", "verify", "FILE"),
    ("report", "FILE"),
    ("report", "FILE", "--format", "json"),
    ("compare", GOLDEN, "FILE"),
    ("compare", "FILE", GOLDEN),
    ("project", "FILE", *DEMAND),
    ("project", "FILE", *DEMAND, "--explain"),
    ("project", "FILE", *DEMAND, "--think", "lognormal:8s,0.6"),
)


def output(*words: str) -> str:
    """What a command prints, or nothing where it refuses; anything but one of our own errors is raised."""
    done = CliRunner().invoke(app, words, standalone_mode=False)
    if isinstance(done.exception, TaxtuiError | costmodel.errors.CostModelError):
        assert "\n" not in str(done.exception)
        assert done.exception.exit_code in (UsageError.exit_code, RecordingError.exit_code)
        return ""
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def assert_harmless(text: str) -> None:
    assert not UNPRINTABLE.search(text.replace("\n", ""))


@seed(18)
@settings(max_examples=60, deadline=None)
@given(hostile.recordings, st.sampled_from(COMMANDS))
def test_no_recording_ends_a_command_in_anything_but_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, command: tuple[str, ...]
) -> None:
    path = tmp_path_factory.mktemp("r") / "r.msgpack"
    path.write_bytes(data)
    assert_harmless(output(*(str(path) if word == "FILE" else word for word in command)))


@seed(18)
@settings(max_examples=60, deadline=None)
@given(hostile.recordings)
def test_no_recording_ends_the_list_a_verification_or_a_replay(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("r") / "r.msgpack"
    path.write_bytes(data)
    entry = catalogue.inspect(path)
    assert entry is not None
    assert_harmless(" ".join([entry.outcome, *entry.substrates, *entry.workloads, *entry.modes, entry.detail]))
    try:
        feed = ReplayFeed(path)
    except SourceError:
        return
    while feed.advance():
        pass
    feed.close()


@pytest.mark.parametrize(
    "words",
    [
        ("project", GOLDEN, *DEMAND, "--prices", "\x1b]52;c;aGk=\x07"),
        ("recordings", "verify", "\x1b[31m"),
        ("\x1b[31m",),
        ("replay", os.fsdecode(b"\xff\x1b")),
    ],
)
def test_an_error_that_quotes_arguments_does_not_steer_the_terminal(words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", "taxtui", *words], capture_output=True, check=False)
    said = done.stderr.decode()
    assert done.returncode in (2, 4)
    assert said.startswith("taxtui: ")
    assert "\ufffd" in said or "\\x" in said
    assert_harmless(said)


def test_what_a_provider_says_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def swept(*_: object) -> tuple[list[object], list[str], int]:
        return [], ["docker x\x1b[2J: no\u202e"], 1

    async def check(_: LocalSubstrate) -> Availability:
        return Availability(ok=False, detail="gone\x1b[2J", fix="look\u202e")

    monkeypatch.setattr(clean, "_clean", swept)
    monkeypatch.setattr(LocalSubstrate, "check", check)
    outputs = [
        CliRunner().invoke(clean.command, ["-s", "local"]).output,
        CliRunner().invoke(conformance.main, ["local"]).output,
    ]
    run.say_clean("fake:x=\x1b[2J: costs money\u202e")
    for text in (*outputs, capsys.readouterr().err):
        assert "\N{REPLACEMENT CHARACTER}" in text
        assert_harmless(text)


@pytest.mark.parametrize("name", ["../x", "", "a b", "x" * 41, "ÄÖ"])
def test_a_run_id_that_could_name_something_else_is_refused(name: str) -> None:
    assert "--run-id" in printed("run", "--run-id", name, code=2)
