"""A recording, played back by the instants in its events: at any speed, from any place."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import Event, Follower
from taxtui.errors import UsageError
from taxtui.live.state import RunState
from taxtui.terminal_text import clean
from taxtui.tui.live.feed import BUDGET_S, SLICE_BYTES
from taxtui.tui.live.timeline import After, Place, ReplayTimeline, Upto

CLOCK: Final = re.compile(r"(?:(\d{1,6}):)?(\d{1,6}):(\d{1,6}(?:\.\d*)?)", re.ASCII)
SHARE: Final = re.compile(r"(\d{1,6}(?:\.\d*)?) ?%", re.ASCII)
TRIAL: Final = re.compile(r"#(\d{1,18})", re.ASCII)


class Standing(NamedTuple):
    """The position of a replay; equal positions look the same."""

    at_ns: float  # since the start; during a seek the sought position
    length_ns: float
    known_ns: float  # end of the timeline so far
    seeking: float | None  # progress of the timeline towards the sought position, 0 to 1; None: no wait
    events: int  # folded so far
    speed: float  # 0 = as fast as it can be read
    paused: bool
    over: bool

    @property
    def share(self) -> float:
        return self.at_ns / self.length_ns if self.length_ns else float(self.over)


class ReplayFeed:
    """A recording as a ``Feed``.

    A timeline folds ahead while the replay plays. Playing never passes the timeline, and a seek begins at a keyframe.
    A seek beyond the timeline waits.
    """

    live = False
    SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 0.0)

    def __init__(self, path: Path, speed: float = 1.0) -> None:
        """Open a recording at its start; a speed of 0 is as fast as it can be read.

        Raises:
            SourceError: the file is not a recording.
        """
        self.path = path
        self.state = RunState()
        self.speed = speed
        self.paused = False
        self.seeking = False  # a seek has not arrived
        self.refusal = ""  # reason that a seek failed
        self.timeline = ReplayTimeline(path)
        self._follower = Follower(path)
        self._waiting: deque[Event] = deque(self._follower.poll(SLICE_BYTES))
        self._applied = 0  # events
        self._clock_unix_ns = self.timeline.start_unix_ns
        self._goal: Callable[[], Place | None] | None = None  # returns the sought position, or None while unknown
        self._place: Place | None = None  # a position that folding has not reached
        self._closed = False
        self._ticked_s = time.monotonic()
        self._travel(Upto(self._clock_unix_ns), self._ticked_s + BUDGET_S)

    def advance(self) -> bool:
        """As ``Feed.advance``: move to the sought position, else to the replay clock's instant."""
        if self._closed:
            return False
        now_s = time.monotonic()
        elapsed_s, self._ticked_s = now_s - self._ticked_s, now_s
        if self._goal and self._place is None:
            self._set_off(self._goal())
        elif not self._goal and not self.paused and not isinstance(self._place, After):
            self._play(elapsed_s)
        share = 1.0 if self.timeline.complete else 0.5
        arrived = self._place is None or self._travel(self._place, now_s + BUDGET_S * share)
        return self.timeline.advance(now_s + BUDGET_S) or not arrived or self._goal is not None

    def _play(self, elapsed_s: float) -> None:
        """Advance the clock; where it would pass the timeline, show the last keyframe."""
        known_unix_ns = self.timeline.now_unix_ns
        before_unix_ns = max(self._clock_unix_ns, self.timeline.start_unix_ns)
        wanted_unix_ns = before_unix_ns + int(elapsed_s * 1e9 * self.speed) if self.speed else known_unix_ns + 1
        self._clock_unix_ns = min(wanted_unix_ns, known_unix_ns)
        self._place = Upto(self._clock_unix_ns)
        if wanted_unix_ns > known_unix_ns and not self.timeline.complete:
            self._jump(self._place)
            self._place = None

    def _set_off(self, place: Place | None) -> None:
        """Go to a place as soon as the timeline has come there."""
        if place is None and self.timeline.complete:
            self._goal, self.seeking = None, False
            self.refusal = "no such trial has ended in this recording"
        elif place is not None and self.timeline.reaches(place):
            self._goal, self._place = None, place
            if isinstance(place, Upto):
                self._clock_unix_ns = int(min(place.unix_ns, self.timeline.now_unix_ns))

    def _travel(self, place: Place, deadline_s: float) -> bool:
        """Fold up to a place; True when there."""
        self._place = place
        self._jump(place)
        limit = place.events if isinstance(place, After) else self.timeline.events
        while self._applied < limit and (event := self._next()) is not None:
            if isinstance(place, Upto) and self.state.instant_unix_ns(event) > place.unix_ns:
                break
            self.state.apply(self._waiting.popleft())
            self._applied += 1
            if time.monotonic() > deadline_s:
                return False
        if isinstance(place, After):
            self._clock_unix_ns = self.state.now_unix_ns
        self._place, self.seeking = None, self._goal is not None
        return True

    def _jump(self, place: Place) -> None:
        """Load the last keyframe before a position, if this saves folding or the position has been passed."""
        passed = self._applied > place.events if isinstance(place, After) else self.state.now_unix_ns > place.unix_ns
        keyframe = self.timeline.before(place)
        if passed or keyframe.events > self._applied:
            self.state = keyframe.state()
            self._applied = keyframe.events
            self._waiting.clear()
            self._follower.resume(keyframe.offset, keyframe.chain)

    def _next(self) -> Event | None:
        if not self._waiting:
            self._waiting.extend(self._follower.poll(SLICE_BYTES))
        return self._waiting[0] if self._waiting else None

    def pause(self) -> None:
        self.paused = not self.paused

    def faster(self, steps: int) -> None:
        """Take the speed ``steps`` further up or down the list; the highest speed has no limit."""
        nearest = min(self.SPEEDS, key=lambda speed: abs(speed - self.speed))
        place = self.SPEEDS.index(nearest) + steps
        self.speed = self.SPEEDS[min(max(place, 0), len(self.SPEEDS) - 1)]

    def seek(self, share: float) -> None:
        """Go to a share of the whole time, 0 = start to 1 = end."""
        timeline = self.timeline

        def place() -> Upto:  # the end is an estimate until the timeline is complete
            whole_ns = timeline.end_unix_ns - timeline.start_unix_ns
            return Upto(timeline.start_unix_ns + int(max(0.0, share) * whole_ns) if share < 1 else inf)

        self._place = None  # an earlier seek is dropped
        self._want(place)

    def seek_by(self, share: float) -> None:
        """Go on, or back, by a share of the whole time."""
        self.seek(round(self.standing.share + share, 6))  # so that the last step reaches the end

    def go_to(self, text: str) -> None:
        """Go to ``2:10`` or ``1:02:10`` after the start, to ``50%``, or to the end of trial ``#158``.

        Raises:
            UsageError: the text is not a position.
        """
        if match := CLOCK.fullmatch(text):
            hours, minutes, seconds = (float(part or 0) for part in match.groups())
            unix_ns = self.timeline.start_unix_ns + int((hours * 3600 + minutes * 60 + seconds) * 1e9)
            self._place = None
            self._want(lambda: Upto(unix_ns))
        elif match := SHARE.fullmatch(text):
            self.seek(float(match[1]) / 100)
        elif match := TRIAL.fullmatch(text):
            self._place = None
            self._want(partial(self.timeline.end_of, int(match[1])))
        else:
            raise UsageError(f'"{clean(text)}" is no place in a recording', fix="write 2:10, 1:02:10, 50% or #158")

    def _want(self, goal: Callable[[], Place | None]) -> None:
        """Go there with the next ``advance``; a speed without limit becomes 1."""
        self._goal, self.seeking, self.refusal = goal, True, ""
        self.speed = self.speed or 1.0

    @property
    def standing(self) -> Standing:
        start, length_ns = self.timeline.start_unix_ns, self.timeline.end_unix_ns - self.timeline.start_unix_ns
        place = self._goal() if self._goal else None
        at_unix_ns = place.unix_ns if isinstance(place, Upto) else self._clock_unix_ns
        at_ns = min(max(0.0, at_unix_ns - start), length_ns)
        known_ns = self.timeline.now_unix_ns - start
        seeking = None
        if self._goal and not self.timeline.complete:
            if place is None:
                seeking = known_ns / max(1, length_ns)
            elif not self.timeline.reaches(place):
                seeking = known_ns / max(1, at_ns)
        return Standing(at_ns, length_ns, known_ns, seeking, self._applied, self.speed, self.paused, self.over)

    @property
    def over(self) -> bool:
        """The replay is at its end; a seek can take it back."""
        at_end = self.timeline.complete and self._applied >= self.timeline.events
        return at_end and self._goal is None and self._place is None

    @property
    def damage(self) -> str:
        """Why there is nothing beyond the end, where that is not the end of the file."""
        return self.timeline.damage if self.over else ""

    @property
    def size_bytes(self) -> int:
        return self.timeline.size_bytes

    @property
    def ending(self) -> RunState | None:
        """The state at the end of the recording, wherever the replay stands; None before that is known."""
        return self.timeline.state if self.timeline.complete else None

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._closed = True
        self.timeline.close()
        self._follower.close()
