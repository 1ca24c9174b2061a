"""Reads and checks the events of a recording, complete or still growing; docs/recording-format.md has the rules."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from costmodel.errors import SourceError
from costmodel.recording import events
from costmodel.recording.events import Event
from costmodel.recording.framing import Chain, FrameParser, damaged, decode
from costmodel.regular_file import open_regular

READ_BYTES: Final = 256 << 10
"""Bytes of a file decoded at a time."""
AFTERWARDS: Final = frozenset({events.CLEANUP, events.VERIFY, events.SNAPSHOT, events.FORK, events.BUILD})
"""Phases that may end after their trial."""
IN_TURN: Final = frozenset({events.CREATE, events.RESET, events.READY, events.READY_AGAIN, events.PRELOAD})
"""Sequential phases before the commands of set-up and actions."""
AFTER_THE_END: Final = "something follows the end of the run"


class Causality:
    """Checks every event of a file, in order."""

    def __init__(self) -> None:
        self._cells: set[events.Cell] = set()
        self._started: dict[int, bool] = {}  # trial: whether it is a warm-up
        self._open: dict[int, InCourse] = {}
        self.end: events.RunFinished | None = None
        self.outcomes: Counter[str] = Counter()  # trials by outcome without warm-ups, as in ``RunFinished``

    def add(self, batch: Sequence[Event]) -> None:
        """Check the next events. Raises ``ValueError`` for a contradiction."""
        if self.end is not None and batch:
            raise ValueError(AFTER_THE_END)
        opened = self._open
        for event in batch:
            if isinstance(event, events.PhaseEnded):
                if event.phase not in AFTERWARDS and (trial := opened.get(event.trial)) is not None:
                    trial.passed(event)
            elif isinstance(event, events.Actions):
                opened.get(event.trial, InCourse(0)).took(event)
            elif isinstance(event, events.TrialStarted):
                if event.trial in self._started:
                    raise ValueError(f"trial {event.trial} starts twice")
                self._started[event.trial] = event.warm_up
                opened[event.trial] = InCourse(event.start_ns)
            elif isinstance(event, events.TrialEnded):
                self._end(event)
            elif isinstance(event, events.Cell):
                self._cells.add(event)
                if len(self._cells) > events.MAX_CELLS:
                    raise ValueError(f"more than {events.MAX_CELLS} cells")
            elif isinstance(event, events.Header):
                if not _is_plain(event.scenario, events.MAX_DEPTH):
                    raise ValueError(f"the scenario is not plain data on at most {events.MAX_DEPTH} levels")
            elif isinstance(event, events.RunFinished):
                self.end = event
                if event is not batch[-1]:
                    raise ValueError(AFTER_THE_END)

    def _end(self, event: events.TrialEnded) -> None:
        trial = self._open.pop(event.trial, None)
        if not self._started.get(event.trial):
            self.outcomes[event.outcome] += 1
        if trial is None:
            return  # its start was lost
        taken_ns = event.end_ns - trial.start_ns
        if trial.last_ns > event.end_ns:
            raise ValueError(f"trial {event.trial} ends before a phase of it does")
        if trial.spent_ns > taken_ns or event.queued_ns > taken_ns:
            raise ValueError(f"trial {event.trial} is shorter than what happened in it")


def _is_plain(value: object, levels: int) -> bool:
    """Return whether a value is plain: maps with text as keys, lists, text, finite numbers, on so many levels."""
    if isinstance(value, dict):
        return levels > 0 and all(isinstance(key, str) and _is_plain(value[key], levels - 1) for key in value)
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


class InCourse:
    """A trial that has not ended: its start, and the time that its events account for."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.last_ns = start_ns  # end of the last phase
        self.spent_ns = 0  # total of sequential phases, commands, think time and gaps

    def took(self, event: events.Actions) -> None:
        """Add commands; those of a preload are part of the phase's time.

        Raises ``ValueError`` for columns of different lengths.
        """
        rows = len(event.duration_ns)
        columns = (event.gap_ns, event.think_ns, event.run_ns, event.exit_code, event.stdout_bytes, event.stderr_bytes)
        if any(column and len(column) != rows for column in (*columns, event.cpu_ns, event.wrapper_ns)):
            raise ValueError(f"trial {event.trial}: columns of different lengths")
        if event.step != events.PRELOAD:
            self.spent_ns += sum(event.duration_ns) + sum(event.gap_ns) + sum(event.think_ns)

    @property
    def earliest_end_ns(self) -> int:
        """Earliest possible end of the trial."""
        return max(self.last_ns, self.start_ns + self.spent_ns)

    def passed(self, event: events.PhaseEnded) -> None:
        """Add a phase. Raises ``ValueError`` if it begins before the trial."""
        if event.start_ns < self.start_ns:
            raise ValueError(f"trial {event.trial}: {event.phase!r} begins before it")
        end_ns = event.start_ns + event.duration_ns
        if end_ns > self.last_ns:
            self.last_ns = end_ns
        if event.phase in IN_TURN:
            self.spent_ns += event.duration_ns


class Follower(AbstractContextManager["Follower"]):
    """Reads a growing or complete recording."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = open_regular(path, buffered=False)
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}") from error
        self.path = path
        self.header: events.Header | None = None
        self.skipped = 0  # events of later versions
        self.frames = 0
        self.last_offset = 0  # start of the last complete frame
        self.events = 0
        self.torn_bytes = 0  # at the end of the file
        self._parser = FrameParser()
        self._chain = Chain()
        self._causality = Causality()
        self._damage: SourceError | None = None  # raised after the events before it

    @property
    def offset(self) -> int:
        """Start of the next frame: bytes of complete frames read."""
        return self._parser.offset

    @property
    def size_bytes(self) -> int:
        """Bytes of a file that was read to its end."""
        return self.offset + self.torn_bytes

    @property
    def chained(self) -> bool:
        """Whether each frame has the checksum of the frame before; False: an early version."""
        return bool(self._chain.chained)

    @property
    def ended(self) -> bool:
        return self._causality.end is not None

    @property
    def complete(self) -> bool:
        """Whether the run has ended with the reported number of trials."""
        end = self._causality.end
        return end is not None and self._causality.outcomes == +Counter(end.counts)

    def poll(self, max_bytes: int = READ_BYTES) -> list[Event]:
        """Return the events appended since the last call, about ``max_bytes``; empty only at the end of the file.

        Raises:
            SourceError: damage, no recording, or a newer format. The events before it have been returned.
        """
        if self._damage:
            raise self._damage
        result: list[Event] = []
        try:
            while not result and (chunk := self._file.read(max_bytes)):
                for offset, payload in self._parser.feed(chunk):
                    result += self._take(offset, payload)
        except OSError as error:
            raise SourceError(f"cannot read {self.path}: {error.strerror}") from error
        except SourceError as error:
            self._damage = self._explain(error)
            if not result:
                raise self._damage from error
        return result

    def _take(self, offset: int, payload: bytes) -> list[Event]:
        batch = decode(payload, offset)
        if self.header is None:
            first = batch.events[0] if batch.events else None
            if not isinstance(first, events.Header):
                raise SourceError("it has no header", 0)
            if first.magic != events.MAGIC:
                raise SourceError("its header says otherwise", 0)
            if first.version > events.FORMAT_VERSION:
                problem = f"format version {first.version}, this taxtui reads up to {events.FORMAT_VERSION}"
                raise SourceError(problem, 0, fix="install a newer taxtui")
            self.header = first
        self._chain.add(batch, payload, offset)
        try:
            self._causality.add(batch.events)
        except ValueError as error:
            raise damaged(offset, str(error)) from error
        self.frames += 1
        self.last_offset = offset
        self.skipped += batch.unknown
        self.events += len(batch.events)
        return batch.events

    def _explain(self, error: SourceError) -> SourceError:
        if self.frames:
            fix = f"keep the part before the damage: head -c {self.offset} FILE > OUT"
            return SourceError(f"{self.path}: {error.problem}", error.offset, fix=error.fix or fix)
        if error.fix:  # a newer format
            return SourceError(f"{self.path}: {error.problem}", 0, fix=error.fix)
        reason = error.problem.removeprefix("damaged at byte 0: ")
        return SourceError(f"{self.path}: not a taxtui recording: {reason}", 0)

    def finish(self) -> events.Header:
        """Check the end of the file once all of it was read; return the header. Raises ``SourceError`` as ``poll``."""
        try:
            self.torn_bytes = self._parser.finish()
        except SourceError as error:
            raise self._explain(error) from error
        if self.header is None:
            problem = "not a taxtui recording: it has no header" if self.size_bytes else "the file is empty"
            raise SourceError(f"{self.path}: {problem}", 0)
        return self.header

    def close(self) -> None:
        self._file.close()

    def __exit__(self, *exc: object) -> None:
        self.close()


def read_events(path: Path, apply: Callable[[Event], object]) -> Follower:
    """Call ``apply`` with every event of a finished or crashed recording, in order; return the facts of the file.

    Raises:
        SourceError: with the offset in bytes of the damage; the events before it have been applied.
    """
    with Follower(path) as follower:
        while events := follower.poll():
            for event in events:
                apply(event)
        follower.finish()
    return follower
