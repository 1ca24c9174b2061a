"""Every command on recordings that an enemy wrote: a table or one line with exit 4, and harmless to a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import costmodel
from costmodel.errors import SourceError
from taxtui.cli import app
from taxtui.commands import clean, run
from taxtui.errors import RecordingError, TaxtuiError, UsageError
from taxtui.live import catalogue
from taxtui.sandboxes.conformance import __main__ as conformance
from taxtui.sandboxes.protocol import Availability
from taxtui.substrates.local.substrate import LocalSubstrate
from taxtui.terminal_text import UNPRINTABLE
from taxtui.tui.live.replay import ReplayFeed
from tests.support.command_line import printed
from tests.support.fuzz import hostile

DEMAND = ("--trajectories", "1000", "--workers", "10")
GOLDEN = str(hostile.GOLDEN)
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
