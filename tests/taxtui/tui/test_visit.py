"""Whole visits in a real terminal, by the keys that a person presses; how many it takes to get to a projection."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from costmodel.recording.follower import read_events
from taxtui.live.state import RunState
from tests.taxtui.tui.terminal import Terminal

pytestmark = [pytest.mark.tmux, pytest.mark.slow]
BARS = "[▁▂▃▄▅▆▇█]{2}"
HOURS = r"T\d \d+ exec +[\d,.]+ +[±(][\d,.…)]+"

WITH_THE_SHIPPED_RECORDING = ["4"]
WITH_A_RUN_OF_ONES_OWN = ["C-r", "3"]
WITH_A_QUESTION_OF_ONES_OWN = ["4", "Right", *["Down", "Right"] * 4]  # trajectories, workers, actions, batch, GPUs
TO_A_PAGE = ["h"]


def folded(path: Path) -> RunState:
    state = RunState()
    read_events(path, state.apply)
    return state


def test_the_answer_of_the_shipped_recording_takes_one_key_a_question_of_ones_own_ten_and_its_page_one_more(
    tmp_path: Path,
) -> None:
    assert len(WITH_THE_SHIPPED_RECORDING) == 1
    assert len(WITH_A_QUESTION_OF_ONES_OWN) <= 10
    assert len(TO_A_PAGE) <= 3
    assert WITH_A_QUESTION_OF_ONES_OWN[:1] == WITH_THE_SHIPPED_RECORDING
    with Terminal(tmp_path) as terminal:
        terminal.until(r"1 Setup")
        terminal.keys(*WITH_THE_SHIPPED_RECORDING)
        terminal.until(r"docker:runc exec runs [\d.]+ ± [\d.]+ times longer than local:bwrap")
        terminal.until(HOURS)
        terminal.until("run.msgpack")
        terminal.keys(*WITH_A_QUESTION_OF_ONES_OWN[1:])
        terminal.until(r"gpus +8\b")
        terminal.until("≈ worker-hours")  # at once, whatever takes a simulation
        terminal.keys(*TO_A_PAGE)
        terminal.until("Page written")
        terminal.keys("q")
        terminal.until("EXIT=0")
    html = (tmp_path / "taxtui" / "recordings" / "run.html").read_text()
    assert re.search(r"docker:runc exec runs [\d.]+ ± [\d.]+ times longer than local:bwrap exec for T\d x \d+", html)
    assert re.search("Training run: 2,000,000 trajectories of .+ on 1,000 workers", html)


@pytest.mark.bwrap
def test_from_the_start_to_the_answer_of_a_fresh_run_with_bars_in_two_keys(tmp_path: Path) -> None:
    launch, results = WITH_A_RUN_OF_ONES_OWN
    with Terminal(tmp_path) as terminal:
        terminal.until("trials")
        terminal.keys(launch)
        terminal.until(r"\d+ ok, 0 failed")
        terminal.keys(results)
        terminal.until("by cause")
        terminal.until("local:bwrap")
        terminal.until("D dispatch")
        terminal.keys("q")
        terminal.until("EXIT=0")


@pytest.mark.bwrap
def test_a_whole_visit(tmp_path: Path) -> None:
    """Start with every SDK, pick, launch, watch, pause, results, project, recordings, replay, quit."""
    with Terminal(tmp_path, width=80, height=24, sdks=True) as terminal:
        terminal.until(r"\[x\] ○ local +bubblewrap")
        terminal.until("-n 50")
        terminal.keys("Tab", "Tab")
        terminal.until("▸ Mode")
        terminal.keys("Tab", "1", "0")  # actions
        terminal.until("-n 10")
        terminal.keys("Tab", "1", "0")
        terminal.until("= [24]0 trials")
        terminal.keys("C-r")
        terminal.until(rf"(?s)n=\d+.*{BARS}")
        terminal.keys("p")
        terminal.until("PAUSED")
        terminal.keys("p")
        terminal.until("[24]0 ok")
        terminal.keys("3")
        terminal.until("time per trajectory")
        terminal.keys("]")
        terminal.until(r"(?s)Cold start: create.*local:bwrap")
        terminal.keys("4")
        terminal.until(HOURS)
        before = terminal.until(HOURS)[0]
        terminal.keys("Right")
        terminal.until(rf"(?s)2,000,000(?!.*{re.escape(before)})")
        terminal.keys("Down", "Enter")
        terminal.until(r"workers: +500\b")  # the field is open
        terminal.keys("7", "7", "Enter")
        terminal.until(r"workers +77\b")
        terminal.keys("5")
        terminal.until(r"finished +.*(\d+)/\1\b")
        terminal.keys("Enter")
        terminal.until("REPLAY")
        terminal.keys("1")
        terminal.until("= [24]0 trials")  # the form is as it was left, in its field
        terminal.keys("BTab", "BTab")
        terminal.until("▸ Mode")
        terminal.keys("q")
        terminal.until("EXIT=0")
    (path,) = (tmp_path / "taxtui" / "recordings").glob("*.msgpack")
    assert folded(path).outcome == "finished"


BROKEN = """
from taxtui.tui.live import panels

def present(self, state, words):
    if any(cell.finished > 3 for cell in state.cells.values()):
        raise RuntimeError("a bug in the interface")
    self.show([])

panels.LogView.present = present
"""


@pytest.mark.bwrap
def test_a_crash_of_the_interface_gives_the_terminal_back_and_cleans_the_run_up(tmp_path: Path) -> None:
    with Terminal(tmp_path, site=BROKEN) as terminal:
        terminal.until("trials")
        terminal.keys("C-r")
        terminal.until("(?s)a bug in the interface.*EXIT=1")
        terminal.keys("a", "n", "d", "Enter")  # echoed by the terminal's own line editing again
        terminal.until("and\n")
    (path,) = (tmp_path / "taxtui" / "recordings").glob("*.msgpack")
    state = folded(path)
    assert state.outcome == "cancelled"
    assert not state.open
