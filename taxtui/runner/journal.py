"""The running side of a recording: the clock that instants refer to, and what happens when the disk is full."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from costmodel.recording.events import Clock, Event, RunFinished, TrialStarted
from taxtui.errors import WriteFailed
from taxtui.recording.writer import Recorder

FLUSH_S: Final = 0.25


class Buffering(Protocol):
    """Something that holds back what it measured for up to ``FLUSH_S``."""

    def flush_columns(self) -> None:
        """Emit it."""
        ...


class EventSink(Protocol):
    """The destination of a worker's events."""

    anchor_ns: int  # what every instant of its events is relative to

    def now(self) -> int:
        """Return ``time.monotonic_ns()`` − ``anchor_ns``."""
        ...

    def emit(self, event: Event) -> None:
        """Append an event. Raises ``WriteFailed``: only for TrialStarted."""
        ...

    def flush(self) -> None:
        """Write the events that have gathered."""
        ...


async def flush_regularly(sink: EventSink, buffering: Iterable[Buffering] = ()) -> None:
    """Write every ``FLUSH_S`` what has gathered, until cancelled."""
    while True:
        await asyncio.sleep(FLUSH_S)
        for source in buffering:
            source.flush_columns()
        sink.flush()


class Journal:
    """Appends events to a recorder; a disk that is full is reported once instead of failing every caller."""

    def __init__(self, recorder: Recorder, failed: Callable[[WriteFailed], None]) -> None:
        """``failed`` is called at most once, from whichever call meets the error first."""
        self.anchor_ns = time.monotonic_ns()
        self._recorder = recorder
        self._failed = failed
        self._error: WriteFailed | None = None
        self._ended = False

    def now(self) -> int:
        """``time.monotonic_ns()`` − ``anchor_ns``."""
        return time.monotonic_ns() - self.anchor_ns

    def emit(self, event: Event) -> None:
        """Append an event. After RunFinished nothing is: a trial that could not be stopped may still talk.

        Raises:
            WriteFailed: only for TrialStarted, because a sandbox that is not in the file must not be made.
        """
        if self._error is None and not self._ended:
            try:
                self._recorder.add(event)
            except WriteFailed as error:
                self._fail(error)
            self._ended = isinstance(event, RunFinished)
        if self._error is not None and isinstance(event, TrialStarted):
            raise self._error

    def flush(self) -> None:
        """Write what has gathered."""
        if self._error is None:
            try:
                self._recorder.flush()
            except WriteFailed as error:
                self._fail(error)

    def _fail(self, error: WriteFailed) -> None:
        self._error = error
        self._failed(error)


class SharedJournal(Journal):
    """The journal of a run that several processes measure: each switch of writer opens with the Clock of the next."""

    def __init__(self, recorder: Recorder, failed: Callable[[WriteFailed], None]) -> None:
        """As ``Journal``. Who owns it writes its own Clock first."""
        super().__init__(recorder, failed)
        self._own: Clock | None = None
        self._writes: Clock | None = None  # the one whose events were written last

    def emit(self, event: Event) -> None:
        """As ``Journal.emit``: an event of its owner."""
        if isinstance(event, Clock):
            self._own = self._writes = event
        elif self._own is not None and self._writes is not self._own:
            self._writes = self._own
            super().emit(self._own)
        super().emit(event)

    def pass_on(self, clock: Clock, events: Sequence[Event]) -> None:
        """Append what another has measured, who has written it down already: it is in the file by the next flush."""
        if self._error is not None or self._ended or not events:
            return
        try:
            self._recorder.extend(events if self._writes is clock else [clock, *events])
        except WriteFailed as error:
            self._fail(error)
        self._writes = clock
