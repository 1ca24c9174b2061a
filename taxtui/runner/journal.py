"""Writes the events of a run with the clock of the instants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from costmodel import Clock, Event, RunFinished, TrialStarted
from taxtui.errors import WriteFailed
from taxtui.recording.writer import Recorder

FLUSH_S: Final = 0.25


class Buffering(Protocol):
    """A source with a buffer of events for up to ``FLUSH_S``."""

    def flush_columns(self) -> None:
        """Emit the buffered events."""


class EventSink(Protocol):
    """The destination of a worker's events."""

    anchor_ns: int  # origin of every instant

    def now(self) -> int:
        """Return ``time.monotonic_ns()`` - ``anchor_ns``."""

    def emit(self, event: Event) -> None:
        """Append an event. Raises ``WriteFailed``: only for TrialStarted."""

    def flush(self) -> None:
        """Write the queued events."""


async def flush_regularly(sink: EventSink, buffering: Iterable[Buffering] = ()) -> None:
    """Flush every ``FLUSH_S``, until cancelled."""
    while True:
        await asyncio.sleep(FLUSH_S)
        for source in buffering:
            source.flush_columns()
        sink.flush()


class Journal:
    """Appends events to a recorder; a full disk is reported once instead of failing every caller.

    Events of several workers are in one file: each change of worker begins with the next worker's Clock.
    """

    def __init__(self, recorder: Recorder, failed: Callable[[WriteFailed], None]) -> None:
        """``failed`` is called once, with the first error. The owner emits a Clock first."""
        self.anchor_ns = time.monotonic_ns()
        self._recorder = recorder
        self._failed = failed
        self._error: WriteFailed | None = None
        self._ended = False
        self._own_clock: Clock | None = None
        self._last: Clock | None = None  # of the last events

    def now(self) -> int:
        return time.monotonic_ns() - self.anchor_ns

    def emit(self, event: Event) -> None:
        """Append an event of the owner. Events after RunFinished, of a trial that does not stop, are dropped.

        Raises:
            WriteFailed: only for TrialStarted, so that no sandbox is missing in the file.
        """
        if self._error is None and not self._ended:
            own_clock = []
            if isinstance(event, Clock):
                self._own_clock = self._last = event
            elif self._own_clock is not None and self._last is not self._own_clock:
                self._last, own_clock = self._own_clock, [self._own_clock]
            try:
                for item in (*own_clock, event):
                    self._recorder.add(item)
            except WriteFailed as error:
                self._fail(error)
            self._ended = isinstance(event, RunFinished)
        if self._error is not None and isinstance(event, TrialStarted):
            raise self._error

    def pass_on(self, clock: Clock, events: Sequence[Event]) -> None:
        """Append events from a worker's file; the next flush writes."""
        if self._error is not None or self._ended or not events:
            return
        try:
            self._recorder.extend(events if self._last is clock else [clock, *events])
        except WriteFailed as error:
            self._fail(error)
        self._last = clock

    def flush(self) -> None:
        if self._error is None:
            try:
                self._recorder.flush()
            except WriteFailed as error:
                self._fail(error)

    def _fail(self, error: WriteFailed) -> None:
        self._error = error
        self._failed(error)
