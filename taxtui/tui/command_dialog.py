"""A command of taxtui in a process: a dialog with progress, then the page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from taxtui.live import catalogue
from taxtui.terminal_text import clean
from taxtui.tui.dialogs import Choice, Choose, Tell, columns

PROGRESS_BYTES: Final = 4096
NICENESS: Final = 15
"""Niceness of the process, below measurements and the interface."""


async def show_command(screen: Screen[Any], title: str, words: Sequence[str], codes: Collection[int]) -> None:
    """Run a command line and show the page; ``codes``: exit codes with a page."""
    page = await screen.app.push_screen_wait(CommandProgress(title, words, codes))
    if page:
        await screen.app.push_screen_wait(Tell(title, Text(page, no_wrap=True), copyable=shlex.join(words)))


class CommandProgress(ModalScreen[str | None]):
    """Shows the progress of a command; the result is the page. Escape ends the process."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Stop", show=False)]

    def __init__(self, title: str, words: Sequence[str], codes: Collection[int]) -> None:
        """Run this command line; see ``show_command``."""
        super().__init__()
        self._title, self._words, self._codes = title, words, codes
        self._stderr_end = ""  # the end of the process's stderr

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = Text(self._title)
            box.border_subtitle = "esc stops"
            yield Static(Text(f"$ {shlex.join(self._words)}", "dim"))
            yield Static("reading the recordings …", id="progress", markup=False)

    def on_mount(self) -> None:
        self.run_command()

    @work
    async def run_command(self) -> None:
        loop = asyncio.get_running_loop()
        terminal, stderr = os.openpty()
        loop.add_reader(terminal, self._read_stderr, terminal)
        process = None
        try:
            process = self._start(stderr)
            page, _ = await asyncio.to_thread(process.communicate)
            if process.returncode in self._codes:
                self.dismiss(_safe(page))
            else:
                self._read_stderr(terminal)
                self._fail(self._last or f"exit code {process.returncode}")
        except OSError as error:  # no more processes
            self._fail(str(error.strerror))
        finally:
            if process is not None and process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the process group has no sandboxes, but perhaps children
                process.wait()
            loop.remove_reader(terminal)
            os.close(stderr)
            os.close(terminal)

    def _fail(self, reason: str) -> None:
        self.query_one("#progress", Static).update(f"✗ {reason}")
        self.query_one(Vertical).border_subtitle = "esc closes"

    def _start(self, stderr: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "taxtui", *self._words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            env={**os.environ, "COLUMNS": str(columns(self.app))},
        )
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)  # an ended process exists until wait()
        return process

    @property
    def _last(self) -> str:
        lines = [line.strip() for line in re.split(r"[\r\n]+", self._stderr_end)]
        return clean(next((line for line in reversed(lines) if line), "")).removeprefix("taxtui: ")

    def _read_stderr(self, terminal: int) -> None:
        os.set_blocking(terminal, False)
        with contextlib.suppress(OSError):
            self._stderr_end = (self._stderr_end + os.read(terminal, PROGRESS_BYTES).decode(errors="replace"))[
                -PROGRESS_BYTES:
            ]
            self.query_one("#progress", Static).update(self._last)


def _safe(page: bytes) -> str:
    """Return the page as text without control characters."""
    return "\n".join(map(clean, page.decode(errors="replace").rstrip().split("\n")))


COMPARED: Final = (0, 5, 6)
"""Exit codes of ``taxtui compare``: no change, a change, too little data."""


async def compare_with_another(screen: Screen[Any], paths: Sequence[Path]) -> None:
    """Ask for an earlier recording, and show the page of ``taxtui compare``."""
    listing = await asyncio.to_thread(catalogue.scan)
    choices = [
        Choice(entry.name, f"{entry.state} {', '.join(entry.substrates)}", entry.path)
        for entry in listing.entries
        if entry.path not in paths and entry.state in catalogue.READABLE
    ]
    if not choices or not paths:
        screen.notify("there is no other recording to compare with", severity="warning")
        return
    before = await screen.app.push_screen_wait(Choose("What changed since", choices))
    if before is not None:
        words = ["taxtui", "compare", catalogue.path_text(before), catalogue.path_text(paths[0])]
        await show_command(screen, f"What changed since {clean(before.name)}", words, COMPARED)
