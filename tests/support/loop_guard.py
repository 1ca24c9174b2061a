"""Notices that somebody blocks an event loop, and where."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Final, NamedTuple

TICK_S: Final = 0.05
BLOCKED_S: Final = 0.5
THREADS: Final = Path("/proc/self/task")


class LoopGuard:
    """Asks the running loop for an answer every ``TICK_S``, from a thread of its own.

    Silence counts while this process sleeps or computes, not while a busy machine does not let its threads run.
    """

    def __init__(self, threads: Path = THREADS) -> None:
        """Begin to watch the loop that is running; ``threads``: where the kernel tells of each thread, if it does."""
        self.blocked_at = ""  # the loop's stack when it had been silent for BLOCKED_S
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._answered = threading.Event()
        self._answered.set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop-guard", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch; called from the loop that was watched."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        asked: _Look | None = None
        while not self._stop.wait(TICK_S):
            if self._answered.is_set():
                self._answered.clear()
                asked = self._look()
                self._loop.call_soon_threadsafe(self._answered.set)
            elif asked and not self.blocked_at and self._look().lived_since(asked) >= BLOCKED_S:
                self.blocked_at = "".join(traceback.format_stack(sys._current_frames()[self._watched])[-4:])

    def _look(self) -> _Look:
        waited_ns, runnable = 0, False
        for thread in self._threads.glob("[0-9]*"):
            if thread.name != str(threading.get_native_id()):
                with contextlib.suppress(OSError):  # it has just ended
                    runnable |= (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R"
            with contextlib.suppress(OSError):
                waited_ns += int((thread / "schedstat").read_text().split()[1])
        return _Look(time.monotonic(), time.process_time(), waited_ns / 1e9, runnable)


class _Look(NamedTuple):
    """What this process had been given at one moment."""

    at_s: float
    cpu_s: float
    waited_s: float  # for a processor, by all threads together
    runnable: bool  # one of them runs or still waits, for who knows how long

    def lived_since(self, before: _Look) -> float:
        """Seconds that were surely not spent waiting for a processor."""
        if self.runnable:
            return self.cpu_s - before.cpu_s
        return self.at_s - before.at_s - (self.waited_s - before.waited_s)
