"""A recording as a feed: all events, in slices that keep the interface responsive."""

from __future__ import annotations

import time
from pathlib import Path

from costmodel import Follower, SourceError
from taxtui.live.state import RunState
from taxtui.terminal_text import clean
from taxtui.tui.live.feed import BUDGET_S, SLICE_BYTES, RunFeed


class ReplayFeed:
    """A source of events for Live; ``over`` at the end of the file, or at damage."""

    live = False

    def __init__(self, path: Path) -> None:
        """Open a recording, and apply the first events. Raises ``SourceError``: the file is not a recording."""
        self.path = path
        self.state = RunState()
        self.over = False
        self.damage = ""  # with the byte offset, if the file is damaged
        self.size_bytes = path.stat().st_size if path.exists() else 0
        self._follower = Follower(path)
        try:
            self._apply_slice()
        except SourceError:
            self.close()
            raise

    def advance(self) -> bool:
        """As ``RunFeed.advance``."""
        deadline = time.monotonic() + BUDGET_S
        while not self.over:
            self._apply_slice()
            if time.monotonic() > deadline:
                return not self.over
        return False

    def _apply_slice(self) -> None:
        try:
            events = self._follower.poll(SLICE_BYTES)
            if not events:
                self._follower.finish()
        except SourceError as error:
            if self._follower.header is None:
                raise
            self.damage = clean(error.problem.removeprefix(f"{self.path}: "))
            events = []
        for event in events:
            self.state.apply(event)
        self.over = not events

    def close(self) -> None:
        """Close the file. Idempotent."""
        self.over = True
        self._follower.close()


Feed = RunFeed | ReplayFeed
"""A source of events for Live."""
