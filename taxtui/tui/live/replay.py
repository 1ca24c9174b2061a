"""A recording as a feed: all events at once, or by their instants at a multiple of real time."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from costmodel import Follower, SourceError, events
from taxtui.live.state import RunState
from taxtui.terminal_text import clean
from taxtui.tui.live.feed import BUDGET_S, SLICE_BYTES, RunFeed


class ReplayFeed:
    """A source of events for Live: an event is applied when the replay's clock reaches the instant of the event."""

    live = False

    def __init__(self, path: Path, speed: float = 0.0) -> None:
        """Open a recording at its start.

        Args:
            path: the recording.
            speed: multiple of real time; 0 reads the whole file at once.

        Raises:
            SourceError: the file is not a recording.
        """
        self.path, self.speed = path, speed
        self.state = RunState()
        self.paused = False
        self.over = False
        self.damage = ""  # with the byte offset, if the file is damaged
        self.size_bytes = path.stat().st_size if path.exists() else 0
        self._follower = Follower(path)
        self._events: deque[events.Event] = deque()  # read, but not yet applied
        self._clock_unix_ns = 0
        self._advanced_s = time.monotonic()
        self._closed = False
        try:
            self._read()
        except SourceError:
            self.close()
            raise

    def advance(self) -> bool:
        """As ``RunFeed.advance``: apply the events up to the replay's clock."""
        now_s = time.monotonic()
        elapsed_s, self._advanced_s = now_s - self._advanced_s, now_s
        if self.paused or self.over or self._closed:
            return False
        self._clock_unix_ns += round(elapsed_s * 1e9 * self.speed)
        while self._events or self._read():
            if self._is_later(self._events[0]):
                return False
            self.state.apply(self._events.popleft())
            if time.monotonic() > now_s + BUDGET_S:
                return True
        self.over = True
        return False

    def _is_later(self, event: events.Event) -> bool:
        """Whether the clock has yet to reach an event; the clock begins with the measurement."""
        if not self.speed or not self.state.started_unix_ns:
            return False
        self._clock_unix_ns = max(self._clock_unix_ns, self.state.started_unix_ns)
        return self.state.instant_unix_ns(event) > self._clock_unix_ns

    def _read(self) -> bool:
        """Read more events; False at the end of the file and at damage."""
        try:
            events = self._follower.poll(SLICE_BYTES)
            if not events:
                self._follower.finish()
        except SourceError as error:
            if self._follower.header is None:
                raise
            self.damage = clean(error.problem.removeprefix(f"{self.path}: "))
            return False
        self._events.extend(events)
        return bool(events)

    def pause(self) -> None:
        self.paused = not self.paused

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._closed = True
        self._follower.close()


Feed = RunFeed | ReplayFeed
"""A source of events for Live."""
