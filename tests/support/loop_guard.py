"""Notices that somebody blocks an event loop, and where."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from pathlib import Path
from typing import Final

TICK_S: Final = 0.05
BLOCKED_TICKS: Final = 10


class LoopGuard:
    """Asks the running loop for an answer every ``TICK_S``, from a thread of its own.

    What counts are ticks without an answer in which the loop's thread slept or computed. On a machine so busy that it
    could have run and was not let to, or that this process does not get to run at all, nothing counts.
    """

    def __init__(self) -> None:
        """Begin to watch the loop that is running."""
        self.blocked_at = ""  # the loop's stack when it had been silent for BLOCKED_TICKS
        self._loop = asyncio.get_running_loop()
        self._watched = threading.current_thread()
        self._jiffies = 0
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
        silent = 0
        while not self._stop.wait(TICK_S):
            starved = self._starved()
            if self._answered.is_set():
                silent = 0
                self._answered.clear()
                self._loop.call_soon_threadsafe(self._answered.set)
                continue
            silent += not starved
            if silent >= BLOCKED_TICKS and not self.blocked_at:
                assert self._watched.ident is not None
                self.blocked_at = "".join(traceback.format_stack(sys._current_frames()[self._watched.ident])[-4:])

    def _starved(self) -> bool:
        """Whether the loop's thread wants to run and has not since the last tick; where that can be known."""
        stat = Path(f"/proc/self/task/{self._watched.native_id}/stat")
        if not stat.exists():
            return False
        state, *fields = stat.read_text().rpartition(")")[2].split()
        before, self._jiffies = self._jiffies, int(fields[10]) + int(fields[11])  # utime and stime: proc(5)
        return state == "R" and self._jiffies == before
