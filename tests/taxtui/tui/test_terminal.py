"""The app in a real terminal, on real sandboxes of this machine."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Final, Self

import pytest

from tests.support import waiting
from tests.support.command_line import events
from tests.taxtui.tui.story import fold

pytestmark = [pytest.mark.tmux, pytest.mark.slow]
BARS = "██"
WITHOUT_DOCKER = {"DOCKER_HOST": "unix:///nowhere"}
"""Trials in containers take many times as long."""
HOURS = r"T\d \d+ exec +[\d,.]+ +[±(][\d,.…)]+"
BETWEEN_LOOKS_S: Final = 0.2
SDKS: Final = ("aiohttp", "asyncssh", "boto3", "inspect_ai", "kubernetes", "swerex")
WITHOUT_SDKS: Final = f"import sys; sys.modules.update(dict.fromkeys({SDKS}))\n"
"""A ``sitecustomize``: Setup asks every substrate, and importing all SDKs takes longer than everything else."""


class Terminal:
    """``taxtui`` in a tmux pane of its own server, in ``folder``; each of its interpreters begins with ``site``."""

    def __init__(self, folder: Path, site: str = "", **env: str) -> None:
        self._tmux = ["tmux", "-L", f"taxtui-{uuid.uuid4().hex[:8]}", "-f", "/dev/null"]
        self._folder, first = folder, folder / "first"
        first.mkdir()
        (first / "sitecustomize.py").write_text(WITHOUT_SDKS + site)
        settings = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "XDG_DATA_HOME": str(folder), **env}
        variables = [f"{name}={value}" for name, value in {**settings, "PYTHONPATH": str(first)}.items()]
        command = shlex.join(["env", *variables, sys.executable, "-m", "taxtui"])
        self._line = f"{command}; echo EXIT=$?; cat"

    def __enter__(self) -> Self:
        self.tmux("new-session", "-d", "-s", "s", "-x", "80", "-y", "24", "-c", str(self._folder), self._line)
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "s", *keys)

    def resize(self, width: int, height: int) -> None:
        self.tmux("resize-window", "-t", "s", "-x", str(width), "-y", str(height))

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until the screen shows this; fail with what it shows instead."""
        while True:
            shown = self.tmux("capture-pane", "-p", "-t", "s")
            if found := re.search(pattern, shown):
                return found
            assert "EXIT=" in pattern or "Traceback" not in shown, shown
            waiting.still(f"/{pattern}/ on\n{shown}")
            time.sleep(BETWEEN_LOOKS_S)

    def tmux(self, *words: str) -> str:
        return subprocess.run(
            [*self._tmux, *words], env={**os.environ, "LANG": "C.UTF-8"}, stdout=subprocess.PIPE, text=True, check=True
        ).stdout


@pytest.mark.bwrap
def test_a_run_is_launched_watched_paused_and_left_by_keys(tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    with Terminal(tmp_path, COLUMNS="80", LINES="24") as terminal:  # exported sizes must not outlive a resize
        terminal.until(r"\[x\] ○ local +\S")
        terminal.keys("C-r")
        terminal.until(rf"(?s){BARS}.*ok [1-9].*ok after")
        terminal.until(r"[1-9]\d*/40")
        terminal.keys("p")  # so that the run is still on when it is left
        terminal.until("(?i)paused")
        terminal.resize(120, 40)
        terminal.until(r"(?m)^.{110,}$")
        terminal.until("lag p99|runner late")
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
    state = fold(events(path))
    assert state.outcome == "cancelled"
    assert state.run_id == path.stem
    assert sum(cell.ok for cell in state.cells.values()) > 0


def test_killing_the_interface_leaves_a_cancelled_and_cleaned_up_run(tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    with Terminal(tmp_path, **WITHOUT_DOCKER) as terminal:
        terminal.until(r"\[x\] ○ local +\S")
        terminal.keys("C-r")
        terminal.until(r"[1-9]\d*/40")
        terminal.end()
    (path,) = (tmp_path / "recordings").glob("*.msgpack")
    waiting.block_until(lambda: fold(events(path)).outcome, "the run is told to stop")
    state = fold(events(path))
    assert state.outcome in ("cancelled", "interrupted")
    assert not state.open


def test_without_a_terminal_it_says_in_one_line_what_to_use_instead(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "taxtui"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "taxtui: there is no terminal to draw on; `taxtui run` measures without one\n"


def test_the_answer_of_the_shipped_recording_takes_one_key_a_question_of_ones_own_ten_and_its_page_one_more(
    tmp_path: Path,
) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.until(r"1 Setup")
        terminal.keys("4")
        terminal.until(r"docker:runc exec takes [\d.]+ ± [\d.]+ times as long as local:bwrap")
        terminal.until(HOURS)
        terminal.until("run.msgpack")
        terminal.keys("Right", *["Down", "Right"] * 4)  # trajectories, workers, actions, batch, GPUs
        terminal.until(r"gpus +8\b")
        terminal.until("≈ worker-hours|2,000,000")  # at once; the simulation may already be done
        terminal.keys("h")
        terminal.until("Page written")
        terminal.keys("q")
        terminal.until("EXIT=0")
    html = (tmp_path / "taxtui" / "recordings" / "run.html").read_text()
    assert re.search(r"docker:runc exec takes [\d.]+ ± [\d.]+ times as long as local:bwrap exec for T\d x \d+", html)
    assert re.search("Training run: 2,000,000 trajectories of .+ on 1,000 workers", html)


BROKEN = """
from taxtui.tui.live import panels

def present(self, state):
    if any(cell.finished > 0 for cell in state.cells.values()):
        raise RuntimeError("a bug in the interface")
    self.show([])

panels.LogView.present = present
"""


@pytest.mark.bwrap
def test_a_crash_of_the_interface_gives_the_terminal_back_and_cleans_the_run_up(tmp_path: Path) -> None:
    with Terminal(tmp_path, site=BROKEN, **WITHOUT_DOCKER) as terminal:
        terminal.until("trials")
        terminal.keys("C-r")
        terminal.until("(?s)a bug in the interface.*EXIT=1")
        terminal.keys("a", "n", "d", "Enter")  # echoed by the terminal's own line editing again
        terminal.until("and\n")
    (path,) = (tmp_path / "taxtui" / "recordings").glob("*.msgpack")
    state = fold(events(path))
    assert state.outcome == "cancelled"
    assert not state.open
