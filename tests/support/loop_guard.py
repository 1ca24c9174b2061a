"""Notices that somebody blocks an event loop, and where."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from typing import Final

TICK_S: Final = 0.05
BLOCKED_TICKS: Final = 10


class LoopGuard:
    """Asks the running loop for an answer every ``TICK_S``, from a thread of its own.

    What counts are ticks without an answer, not seconds: on a machine so busy that this process does not get to run,
    the asking thread does not either.
    """

    def __init__(self) -> None:
        """Begin to watch the loop that is running."""
        self.blocked_at = ""  # the loop's stack when it had been silent for BLOCKED_TICKS
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
        silent = 0
        while not self._stop.wait(TICK_S):
            if self._answered.is_set():
                silent = 0
                self._answered.clear()
                self._loop.call_soon_threadsafe(self._answered.set)
                continue
            silent += 1
            if silent >= BLOCKED_TICKS and not self.blocked_at:
                self.blocked_at = "".join(traceback.format_stack(sys._current_frames()[self._watched])[-4:])
