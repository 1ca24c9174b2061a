"""Writes the events of a run with the clock of the instants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from costmodel import events
from taxtui.errors import WriteFailed

FLUSH_S: Final = 0.25


class EventSink(Protocol):
    """The place of a journal's events: a recording, or the pipe to the run."""

    def add(self, event: events.Event) -> None:
        """Queue an event. Raises ``WriteFailed``."""

    def flush(self) -> None:
        """Write the queued events. Raises ``WriteFailed``."""


class Journal:
    """Appends events to a recorder; a full disk is reported once instead of failing every caller.

    Events of several workers are in one file: each change of worker begins with the next worker's Clock.
    """

    def __init__(self, recorder: EventSink, failed: Callable[[WriteFailed], None]) -> None:
        """``failed`` is called once, with the first error. The owner emits a Clock first."""
        self.anchor_ns = time.monotonic_ns()  # origin of every instant
        self.follow: Callable[[events.Event], None] = lambda _: None  # called with starts and ends of trials and phases
        self._recorder = recorder
        self._failed = failed
        self._error: WriteFailed | None = None
        self._ended = False
        self._own_clock: events.Clock | None = None
        self._last: events.Clock | None = None  # of the last events

    def now(self) -> int:
        return time.monotonic_ns() - self.anchor_ns

    def emit(self, event: events.Event) -> None:
        """Append an event of the owner. Events after RunFinished, of a trial that does not stop, are dropped.

        Raises:
            WriteFailed: only for TrialStarted, so that no sandbox is missing in the file.
        """
        if isinstance(event, events.Clock):
            self._own_clock = self._last = event
        self.pass_on(self._own_clock, [event])
        self._ended = self._ended or isinstance(event, events.RunFinished)
        if self._error is not None and isinstance(event, events.TrialStarted):
            raise self._error
        if isinstance(event, events.TrialStarted | events.PhaseEnded | events.TrialEnded):
            self.follow(event)

    def pass_on(self, clock: events.Clock | None, batch: Sequence[events.Event]) -> None:
        """Append events of a worker, with its clock where the last events have another."""
        if self._error is not None or self._ended or not batch:
            return
        try:
            for event in batch if clock is None or clock is self._last else (clock, *batch):
                self._recorder.add(event)
        except WriteFailed as error:
            self._fail(error)
        self._last = clock

    def flush(self) -> None:
        if self._error is None:
            try:
                self._recorder.flush()
            except WriteFailed as error:
                self._fail(error)

    async def flush_regularly(self) -> None:
        """Write the queued events every ``FLUSH_S``, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_S)
            self.flush()

    def _fail(self, error: WriteFailed) -> None:
        self._error = error
        self._failed(error)
