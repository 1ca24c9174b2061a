"""A measurement in a child process, as a source of events for Live."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from costmodel import Follower, SourceError
from taxtui.live.state import RunState
from taxtui.plan.scenario import STDIN
from taxtui.terminal_text import clean

NICENESS: Final = 10
SLICE_BYTES: Final = 128 << 10
BUDGET_S: Final = 0.03
"""Longest time of an ``advance``, for a responsive interface."""


class RunStarter:
    """Starts children at normal priority from an interface with a lower priority.

    On Linux a child inherits the niceness of the thread that starts the child. One thread keeps the normal priority.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "taxtui-launcher")
        self._spared = self._pool.submit(threading.get_native_id).result()
        self._niced = False

    def start(self, command: list[str], stderr: Any) -> Future[subprocess.Popen[bytes]]:
        """Start ``command`` in a new session: when the terminal closes, the child gets an end of file, not a signal."""
        return self._pool.submit(
            subprocess.Popen,
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )

    def yield_cpu(self) -> None:
        """Raise the niceness of all threads but the launcher, once: the measurement has priority.

        Equal niceness avoids waits for the shared interpreter. Only Linux has a niceness per thread.
        """
        if self._niced or sys.platform != "linux":
            return
        self._niced = True
        for thread in threading.enumerate():
            number = thread.native_id
            if number is not None and number != self._spared:
                with contextlib.suppress(ProcessLookupError):  # the thread has just ended
                    niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, number))  # perhaps nicer already
                    os.setpriority(os.PRIO_PROCESS, number, niceness)


class RunFeed:
    """A measurement in a child process, ``taxtui run … --control stdin``."""

    live = True

    def __init__(
        self, scenario: dict[str, Any] | str, path: Path, launcher: RunStarter, options: Sequence[str] = ()
    ) -> None:
        """Start the measurement of a scenario: a mapping, a name or a path.

        The recording is ``path``; the file name without suffix is the id of the run.
        """
        self.path = path
        self.state = RunState()
        self.paused = False
        self.cancelled = False
        # A file without a name: no file stays, however this process ends.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        name = scenario if isinstance(scenario, str) else STDIN
        command = [sys.executable, "-m", "taxtui", "run", name, "-o", str(path)]
        command += ["--run-id", path.stem]
        command += ["--control", "stdin", "--progress", "none", *options]
        self._child = launcher.start(command, self._stderr).result()
        if name == STDIN:
            self._write(msgspec.json.encode(scenario))
        self._follower: Follower | None = None
        self._drained = False
        self._unreadable = False

    def advance(self) -> bool:
        """Apply new events for at most ``BUDGET_S``; return whether more are waiting. Raises ``SourceError``.

        The file appears a moment after the start of the child.
        """
        exited = self._child.poll() is not None  # before the file is read, so that no event is missed
        if self._follower is None and not self.path.exists():
            return False
        deadline = time.monotonic() + BUDGET_S
        try:
            self._follower = self._follower or Follower(self.path)
            while batch := self._follower.poll(SLICE_BYTES):
                for event in batch:
                    self.state.apply(event)
                if time.monotonic() > deadline:
                    return True
        except SourceError:
            self._unreadable = True
            raise
        self._drained = exited
        return False

    @property
    def exit_code(self) -> int | None:
        """Exit code of the child; None while the child runs."""
        return self._child.poll()

    @property
    def over(self) -> bool:
        """Whether all events have been applied."""
        return self.exit_code is not None and (self._drained or self._unreadable or not self.path.exists())

    @property
    def size_bytes(self) -> int:
        return self._follower.offset if self._follower else 0

    @property
    def complaint(self) -> list[str]:
        """The last lines of the child's stderr."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()
        return [clean(line) for line in lines if line.strip()][-12:]

    def pause(self) -> None:
        self.paused = not self.paused
        self._send("pause" if self.paused else "resume")

    def cancel(self) -> None:
        self.cancelled = True
        self._send("cancel")

    def _send(self, op: Literal["pause", "resume", "cancel"]) -> None:
        self._write(msgspec.json.encode({"op": op}))

    def _write(self, line: bytes) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(line + b"\n")
            self._child.stdin.flush()
        except OSError:
            pass  # the child has just ended; the next advance() shows the end

    def close(self) -> None:
        """Cancel the measurement by closing the child's stdin, and wait for the clean-up."""
        if self._child.stdin and not self._child.stdin.closed:
            self._child.communicate()
        if self._follower:
            self._follower.close()
        self._stderr.close()
