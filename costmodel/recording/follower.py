"""Reads the events of a recording, complete or still growing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from costmodel.errors import SourceError
from costmodel.recording.events import FORMAT_VERSION, MAGIC, Event, Header, RunFinished
from costmodel.recording.framing import Chain, FrameParser, damaged, decode
from costmodel.recording.validation import Causality
from costmodel.regular_file import open_regular

READ_BYTES: Final = 256 << 10
"""Bytes of a file decoded at a time."""


class Follower:
    """Reads a growing or complete recording."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = open_regular(path, buffered=False)
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}") from error
        self.path = path
        self.header: Header | None = None
        self.skipped = 0  # events of later versions
        self.frames = 0
        self.events = 0
        self.torn_bytes = 0  # at the end of the file
        self._empty = True
        self._end: RunFinished | None = None
        self._parser = FrameParser()
        self.chain = Chain()  # up to the last frame that was read
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
        return bool(self.chain.chained)

    @property
    def ended(self) -> bool:
        return self._end is not None

    @property
    def complete(self) -> bool:
        """Whether the run has ended with the reported number of trials."""
        return self._end is not None and self._causality.outcomes == +Counter(self._end.counts)

    def poll(self, max_bytes: int = READ_BYTES) -> list[Event]:
        """Return the events appended since the last call, about ``max_bytes``; empty only at the end of the file.

        Raises:
            SourceError: damage, no recording, or a newer format. The events before it have been returned.
        """
        if self._damage:
            raise self._damage
        events: list[Event] = []
        while not events and (chunk := self._file.read(max_bytes)):
            self._empty = False
            try:
                for offset, payload in self._parser.feed(chunk):
                    events += self.take(offset, payload)
            except SourceError as error:
                self._damage = self._explain(error)
                if not events:
                    raise self._damage from error
                break
        return events

    def take(self, offset: int, payload: bytes) -> list[Event]:
        """Decode and check the next frame, which begins at ``offset``."""
        batch = decode(payload, offset)
        events = batch.events
        if self.header is None:
            self._check_header(events)
        self.chain.add(batch, payload, offset)
        try:
            self._causality.add(events)
        except ValueError as error:
            raise damaged(offset, str(error)) from error
        self.frames += 1
        self.skipped += batch.unknown
        self.events += len(events)
        if events and isinstance(events[-1], RunFinished):
            self._end = events[-1]
        return events

    def _check_header(self, events: list[Event]) -> None:
        first = events[0] if events else None
        if not isinstance(first, Header):
            raise SourceError("it has no header", 0)
        if first.magic != MAGIC:
            raise SourceError("its header says otherwise", 0)
        if first.version > FORMAT_VERSION:
            problem = f"format version {first.version}, this taxtui reads up to {FORMAT_VERSION}"
            raise SourceError(problem, 0, fix="install a newer taxtui")
        self.header = first

    def _explain(self, error: SourceError) -> SourceError:
        if self.frames:
            fix = f"keep the part before the damage: head -c {self.offset} FILE > OUT"
            return SourceError(f"{self.path}: {error.problem}", error.offset, fix=error.fix or fix)
        if error.fix:  # a newer format
            return SourceError(f"{self.path}: {error.problem}", 0, fix=error.fix)
        reason = error.problem.removeprefix("damaged at byte 0: ")
        return SourceError(f"{self.path}: not a taxtui recording: {reason}", 0)

    def finish(self) -> Header:
        """Check the end of the file once all of it was read; return the header. Raises ``SourceError`` as ``poll``."""
        if self.header is None:
            problem = "the file is empty" if self._empty else "not a taxtui recording: it has no header"
            raise SourceError(f"{self.path}: {problem}", 0)
        try:
            self.torn_bytes = self._parser.finish()
        except SourceError as error:
            raise self._explain(error) from error
        return self.header

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

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
