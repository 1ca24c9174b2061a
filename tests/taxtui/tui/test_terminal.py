"""The app in a real terminal, on real sandboxes of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from costmodel.recording.follower import read_events
from taxtui.live.state import RunState
from taxtui.recording.writer import Recorder
from tests.support.waiting import block_until
from tests.taxtui.tui import story
from tests.taxtui.tui.story import record
from tests.taxtui.tui.terminal import Terminal

pytestmark = [pytest.mark.tmux, pytest.mark.slow]
BARS = "[▁▂▃▄▅▆▇█]{2}"


def folded(path: Path) -> RunState:
    state = RunState()
    read_events(path, state.apply)
    return state


@pytest.mark.bwrap
def test_a_run_is_launched_watched_paused_and_left_by_keys(tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    with Terminal(tmp_path, COLUMNS="80", LINES="24") as terminal:  # exported sizes must not outlive a resize
        terminal.until(r"\[x\] ○ local +\S")
        terminal.keys("C-r")
        terminal.until(rf"(?s)n=\d+.*{BARS}")  # trials stream into a histogram
        terminal.until(r"[1-9]\d*/40")
        terminal.keys("p")  # so that the run is still on when it is left
        terminal.until("(?i)paused")
        terminal.resize(120, 40)
        terminal.until(r"(?m)^.{110,}$")
        terminal.until("lag p99")
        terminal.resize(60, 18)
        terminal.until(r"\A\s*taxtui needs 80x24; this terminal is 60x18\s*\Z")  # and nothing else
        terminal.resize(80, 24)
        terminal.until(r"mean trial of T1 x 50")
        terminal.keys("]")
        terminal.until("fresh episode · ")
        terminal.keys("q")
        terminal.until("Quit\\?")
        terminal.keys("y")
        terminal.until(r"(?s)cancelled after .* ok, .*next: taxtui project.*EXIT=0")
    (path,) = (tmp_path / "recordings").glob("*.msgpack")
    state = folded(path)
    assert state.outcome == "cancelled"
    assert state.run_id == path.stem
    assert sum(cell.ok for cell in state.cells.values()) > 0


def test_a_replay_ends_in_the_state_of_the_recording(tmp_path: Path) -> None:
    path = record(tmp_path / "story.msgpack", story.run(30))
    with Terminal(tmp_path, "replay", str(path), "--speed", "0", width=120, height=40) as terminal:
        terminal.until("REPLAY END")
        terminal.until(r"30/30 +ok 30 +fail 0")
        terminal.until(r"30/30 +ok 26 +fail 4")
        terminal.keys("q")
        terminal.until("EXIT=0")


def test_killing_the_interface_leaves_a_cancelled_and_cleaned_up_run(tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    with Terminal(tmp_path) as terminal:
        terminal.until(r"\[x\] ○ local +\S")
        terminal.keys("C-r")
        terminal.until(r"[1-9]\d*/40")
        terminal.end()
    (path,) = (tmp_path / "recordings").glob("*.msgpack")
    block_until(lambda: folded(path).outcome, "the run is told to stop")
    state = folded(path)
    assert state.outcome in ("cancelled", "interrupted")
    assert not state.open


def test_no_color_is_obeyed(tmp_path: Path) -> None:
    path = record(tmp_path / "story.msgpack", story.run(5))
    with Terminal(tmp_path, "replay", str(path), "--speed", "0", NO_COLOR="1") as terminal:
        terminal.until("REPLAY END")
        coloured = terminal.tmux("capture-pane", "-p", "-e", "-t", "s")
        greys = {tuple(code) for code in _rgb(coloured)}
        assert all(max(code) - min(code) <= 3 for code in greys), greys
        terminal.keys("q")
        terminal.until("EXIT=0")


def test_sixteen_colours_are_enough(tmp_path: Path) -> None:
    path = record(tmp_path / "story.msgpack", story.run(5))
    with Terminal(tmp_path, "replay", str(path), "--speed", "0", TERM="xterm-16color") as terminal:
        terminal.until("REPLAY END")
        coloured = terminal.tmux("capture-pane", "-p", "-e", "-t", "s")
        assert "\x1b[93m" in coloured  # what local is drawn in, as near as such a terminal can
        assert not re.search(r"[34]8;[25];", coloured)
        terminal.keys("q")
        terminal.until("EXIT=0")


def _rgb(text: str) -> list[list[int]]:
    return [[int(n) for n in found] for found in re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", text)]


@pytest.mark.parametrize("arguments", [[], ["replay", "small.msgpack"]])
def test_without_a_terminal_it_says_in_one_line_what_to_use_instead(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "taxtui", *arguments],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "taxtui: there is no terminal to draw on; `taxtui run` measures without one\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"not a recording", "not a taxtui recording"), (b"", "empty"), (None, "there is no x")],
    ids=["text", "empty", "missing"],
)
def test_what_is_no_recording_is_refused_in_one_line(content: bytes | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "x.msgpack").write_bytes(content)
    with Terminal(tmp_path, "replay", "x.msgpack", width=120) as terminal:
        terminal.until(rf"(?s)taxtui: .*{words}.*EXIT=4")


def test_an_incomplete_recording_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "cut.msgpack"
    with Recorder(path) as recorder:
        for event in story.run(30, until=10, finish=False):
            recorder.add(event)
    with path.open("ab") as file:
        file.write(b"\xc9\x00\x00\x10\x00")  # a torn frame
    with Terminal(tmp_path, "replay", str(path), "--speed", "0") as terminal:
        terminal.until("INCOMPLETE")
        terminal.until(r"10/30")
        terminal.keys("q")
        terminal.until("EXIT=0")
