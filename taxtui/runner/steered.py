"""What a person can ask of a run while it goes on."""

from __future__ import annotations

import asyncio

from taxtui.recording.events import CANCELLED, INTERRUPTED
from taxtui.runner.progress import Progress
from taxtui.runner.trial.trial import Trial


class Steered:
    """Whether more is started, and what is in flight."""

    def __init__(self, progress: Progress) -> None:
        """Nothing has been asked for."""
        self.progress = progress
        self._trials: set[Trial] = set()
        self._stopping = ""
        self._stopped = asyncio.Event()
        self._abandoned = asyncio.Event()
        self._unpaused = asyncio.Event()
        self._unpaused.set()

    def stop(self, outcome: str, limit: str = "") -> None:
        """Launch nothing more; trials in flight come to their end. ``limit``: which one is used up, where one is."""
        if not self._stopping:
            self._stopping, self.progress.limit = outcome, limit
        self._stopped.set()
        self._unpaused.set()

    def abandon(self, outcome: str) -> None:
        """Launch nothing more and stop trials where they are; every clean-up still runs."""
        self.stop(outcome)
        self._abandoned.set()
        for trial in list(self._trials):
            trial.abandon(CANCELLED if outcome == CANCELLED else INTERRUPTED)

    @property
    def stopping(self) -> bool:
        """Whether launching has been stopped for good."""
        return bool(self._stopping)

    def pause(self, paused: bool) -> None:
        """Hold back launches, or go on."""
        if paused and not self._stopping:
            self._unpaused.clear()
        else:
            self._unpaused.set()
