"""An index of a recording, built ahead of the replay: length, ends of trials, keyframes for seeks."""

from __future__ import annotations

import copy
import pickle
import time
from array import array
from bisect import bisect_right
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import Follower, SourceError, TrialEnded, framing
from taxtui.live.state import RunState
from taxtui.terminal_text import clean
from taxtui.tui.live.feed import SLICE_BYTES

KEYFRAMES: Final = 128
"""Most keyframes of a file: a seek folds less than a hundredth of it. A keyframe of 36 busy cells takes 130 kB."""


class Upto(NamedTuple):
    """A place in a recording: before the first event that became true after an instant."""

    unix_ns: float  # infinite: the end


class After(NamedTuple):
    """A place in a recording: after a number of events."""

    events: int


Place = Upto | After


class Keyframe(NamedTuple):
    """The fold at a boundary between two frames."""

    unix_ns: int  # the latest instant that was named
    events: int  # that were folded
    offset: int  # bytes, where the next frame begins
    chain: framing.Chain  # which one that has to be
    packed: bytes  # the ``RunState``, pickled: a tenth of the memory that a copy of it takes

    def state(self) -> RunState:
        state: RunState = pickle.loads(self.packed)
        return state


class ReplayTimeline:
    """The index of one recording; ``advance`` builds it in slices."""

    def __init__(self, path: Path) -> None:
        """Read the first instant. Raises ``SourceError`` for a file that is no recording."""
        self._path = path
        self._follower = Follower(path)
        self.size_bytes = path.stat().st_size
        self.complete = False  # everything has been folded
        self.damage = ""  # why it was not read to the end of the file, with the byte offset
        self.events = 0
        self.state = RunState()  # of everything folded so far
        self._keyframes = [self._keyframe()]
        self._ends = array("Q")  # how many events there were when each finished trial had ended
        self._trials: list[int] = []  # the number of each
        try:
            self._fold()
            while not (self.state.started_unix_ns or self.complete or self._offset > framing.MAX_LENGTH):
                self._fold()
        except SourceError:
            self.close()
            raise

    def advance(self, deadline_s: float) -> bool:
        """Fold on until then, at least one slice; True while more is to do."""
        while not self.complete:
            self._fold()
            if time.monotonic() > deadline_s:
                break
        return not self.complete

    def _fold(self) -> None:
        try:
            batch = self._follower.poll(SLICE_BYTES)
            if not batch:
                self._follower.finish()
        except SourceError as error:
            if self._follower.header is None:
                raise
            batch = []
            self.damage = clean(error.problem.removeprefix(f"{self._path}: "))
        for event in batch:
            self.state.apply(event)
            self.events += 1
            if isinstance(event, TrialEnded):
                self._trials.append(event.trial)
                self._ends.append(self.events)
        self.complete = not batch
        behind = self._offset - self._keyframes[-1].offset
        if behind and (self.complete or behind >= max(SLICE_BYTES, self.size_bytes // KEYFRAMES)):
            self._keyframes.append(self._keyframe())
        if self.complete:
            self.close()

    def _keyframe(self) -> Keyframe:
        return Keyframe(
            self.state.now_unix_ns, self.events, self._offset, copy.copy(self._follower.chain), pickle.dumps(self.state)
        )

    @property
    def _offset(self) -> int:
        return self._follower.offset

    @property
    def start_unix_ns(self) -> int:
        """Start of the first worker, in Unix ns."""
        return self.state.started_unix_ns

    @property
    def now_unix_ns(self) -> int:
        return self.state.now_unix_ns

    @property
    def end_unix_ns(self) -> int:
        """The last instant; until the index is complete, an estimate in proportion to the bytes."""
        if self.complete:
            return self.now_unix_ns
        known_ns = self.now_unix_ns - self.start_unix_ns
        return self.now_unix_ns + known_ns * max(0, self.size_bytes - self._offset) // max(1, self._offset)

    def reaches(self, place: Place) -> bool:
        if isinstance(place, After):
            return place.events <= self.events
        return self.complete or place.unix_ns < self.now_unix_ns

    def before(self, place: Place) -> Keyframe:
        """The last keyframe that is not beyond a place."""
        name, value = ("events", place.events) if isinstance(place, After) else ("unix_ns", place.unix_ns)
        return self._keyframes[max(0, bisect_right(self._keyframes, value, key=attrgetter(name)) - 1)]

    def end_of(self, trial: int) -> After | None:
        """Return the end of a trial, or None if unknown so far."""
        return After(self._ends[self._trials.index(trial)]) if trial in self._trials else None

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._follower.close()
