"""Reads a recording: followed live by the TUI, read back by everything else, salvaged where it is damaged."""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from costmodel.regular_file import open_regular, read_regular
from taxtui.errors import RecordingError, WriteFailed
from taxtui.recording.causality import Causality
from taxtui.recording.events import FORMAT_VERSION, MAGIC, Event, Header, Notice, RunFinished, TrialEnded, TrialStarted
from taxtui.recording.frames import (
    MAX_SEARCHED,
    PREFIX,
    Chain,
    FrameParser,
    Sealer,
    Search,
    decode,
    frame,
    payload_at,
    split,
)

MOST_SALVAGED: Final = 4 << 30
"""Bytes of a damaged file: they are searched in memory."""
SEARCHED_PER_BYTE: Final = 128
"""Of a damaged file, besides ``MAX_SEARCHED``: so many bytes are tried in vain for each that it has, 0.1 s a MB."""


class Follower:
    """Reads a recording while it is being written, and afterwards."""

    CHUNK_BYTES: Final = 1 << 20

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            RecordingError: there is no such file, or it cannot be read.
        """
        try:
            self._file = open_regular(path, buffered=False)
        except OSError as error:
            raise RecordingError(f"cannot read {path}: {error.strerror}") from error
        self.path = path
        self.header: Header | None = None
        self.skipped = 0  # events that this version does not understand
        self.frames = 0
        self._begun = False  # a first byte was read
        self._end: RunFinished | None = None
        self._parser = FrameParser()
        self.chain = Chain()  # up to what was read last
        self._trials: EndedTrials | None = EndedTrials()  # None: not all trials pass by
        self._causality: Causality | None = Causality()  # as well
        self._damage: RecordingError | None = None  # to be raised once the events before it are handed out

    @property
    def offset(self) -> int:
        """Where the next frame begins: bytes of complete frames up to what was read last."""
        return self._parser.offset

    @property
    def chained(self) -> bool:
        """Whether each frame names the one before."""
        return bool(self.chain.chained)

    @property
    def ended(self) -> bool:
        """Whether the end of the run was seen."""
        return self._end is not None

    @property
    def complete(self) -> bool:
        """Whether the run has ended, with just the trials that its end counts."""
        if self._end is None or self._trials is None:
            return self._end is not None
        return self._trials.outcomes == +Counter(self._end.counts)

    def poll(self, max_bytes: int = 8 << 20) -> list[Event]:
        """What was appended since the last call, about ``max_bytes`` of it; empty only at the end of the file.

        Raises:
            RecordingError: damage, not a recording, or a version that this program does not know. The events
                before it have been returned.
        """
        if self._damage:
            raise self._damage
        events: list[Event] = []
        at_once = min(self.CHUNK_BYTES, max_bytes)
        while (max_bytes > 0 or not events) and (chunk := self._file.read(at_once)):
            max_bytes -= len(chunk)
            self._begun = True
            try:
                for offset, payload in self._parser.feed(chunk):
                    events += self._events(offset, payload)
            except RecordingError as error:
                what = error if self.frames else "not a taxtui recording"
                self._damage = RecordingError(f"{self.path}: {what}", error.offset)
                if not events:
                    raise self._damage from error
                break
        return events

    def resume(self, offset: int, chain: Chain | None = None) -> None:
        """Go on at ``offset``, where a frame begins; the header must have been read before.

        ``chain`` is what the frames before came to, of whoever has read them. Without one the frame there is believed.
        """
        self._file.seek(offset)
        self._parser = FrameParser(offset)
        self.chain = copy.copy(chain) if chain else Chain(within=offset > 0)
        self._trials, self._causality = (None, None) if offset else (EndedTrials(), Causality())
        self._damage = None
        self._end = None

    def _events(self, offset: int, payload: bytes) -> list[Event]:
        self.frames += 1
        batch = decode(payload, offset)
        events = batch.events
        if self.header is None:
            self._check_header(events, offset)
        self.chain.add(batch, payload, offset)
        self.skipped += batch.unknown
        if self._causality is not None:
            try:
                self._causality.add(events)
            except ValueError as error:
                raise RecordingError(f"damaged at byte {offset}: {error}", offset) from error
        if self._trials is not None:
            self._trials.add(events)
        if events and isinstance(events[-1], RunFinished):
            self._end = events[-1]
        return events

    def _check_header(self, events: list[Event], offset: int) -> None:
        first = events[0] if events else None
        if not isinstance(first, Header) or first.magic != MAGIC:
            raise RecordingError("not a taxtui recording: it has no header", offset)
        if first.version > FORMAT_VERSION:
            raise RecordingError(
                f"format version {first.version}, this taxtui reads up to {FORMAT_VERSION}",
                offset,
                fix="install a newer taxtui",
            )
        self.header = first

    def finish(self) -> int:
        """Say that nothing more will come; the size in bytes of a torn tail. Raises ``RecordingError``."""
        if self.header is None:
            what = "not a taxtui recording" if self._begun else "the file is empty"
            raise RecordingError(f"{self.path}: {what}", 0)
        try:
            return self._parser.finish()
        except RecordingError as error:
            raise RecordingError(f"{self.path}: {error}", error.offset) from error

    def summary(self, events: int) -> RecordingSummary:
        """What the whole file turned out to be, once all its events have been handed out. Raises ``RecordingError``."""
        torn = self.finish()
        assert self.header is not None  # finish() has checked it
        return RecordingSummary(
            header=self.header,
            complete=self.complete,
            ended=self.ended,
            frames=self.frames,
            events=events,
            skipped=self.skipped,
            torn_bytes=torn,
            size_bytes=self.offset + torn,
            chained=self.chained,
        )

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()

    def __enter__(self) -> Self:
        """The follower itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close it."""
        self.close()


class RecordingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole file turned out to be."""

    header: Header
    complete: bool  # it ends with RunFinished, and the trials that this counts are there
    ended: bool  # it ends with RunFinished
    frames: int
    events: int
    skipped: int
    torn_bytes: int
    size_bytes: int
    chained: bool  # each frame names the one before; False: from an early version, no splice would be seen


class EndedTrials:
    """Counts trials as ``RunFinished`` does: by outcome, without warm-ups."""

    def __init__(self) -> None:
        """None so far."""
        self._warm_ups: set[int] = set()
        self.outcomes: Counter[str] = Counter()

    def add(self, events: Iterable[Event]) -> None:
        """Events in the order of the file."""
        for event in events:
            if type(event) is TrialStarted:
                if event.warm_up:
                    self._warm_ups.add(event.trial)
            elif type(event) is TrialEnded and event.trial not in self._warm_ups:
                self.outcomes[event.outcome] += 1


def read(path: Path, apply: Callable[[Event], object]) -> RecordingSummary:
    """Hand every event of a finished or crashed recording to ``apply``, in order.

    Raises:
        RecordingError: with the byte offset where the damage begins; the events before it have been applied.
    """
    count = 0
    with Follower(path) as follower:
        while events := follower.poll():
            for event in events:
                apply(event)
            count += len(events)
        return follower.summary(count)


def salvage(path: Path, out: Path) -> tuple[int, int]:
    """Copy the intact frames of a damaged recording to a new file; (frames kept, bytes lost).

    Where frames were chained they are chained anew, behind a notice that says how much was lost.

    Raises:
        RecordingError: it cannot be read, no header frame is left, or ``out`` exists.
        WriteFailed: the disk is full or gone; nothing is left of ``out``.
    """
    try:
        data = read_regular(path, MOST_SALVAGED)
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}") from error
    kept: list[bytes] = []
    first: Event | None = None
    chained, causality = False, Causality()
    for start, payload in _intact(data):
        # A valid checksum over what no reader would take is no intact frame.
        with contextlib.suppress(RecordingError, ValueError):
            batch = decode(payload, start)
            first = first if kept else next(iter(batch.events), None)
            if kept and isinstance(next(iter(batch.events), None), Header):
                break  # another recording was put behind
            causality.add(batch.events)
            chained |= batch.link is not None
            kept.append(payload)
    if not isinstance(first, Header):
        raise RecordingError(f"{path}: its header is lost, nothing can be salvaged", 0)
    lost = len(data) - sum(PREFIX.size + len(payload) for payload in kept)
    frames = _chained_anew(kept, lost) if chained else map(frame, kept)
    try:
        file = out.open("xb")
    except OSError as error:
        raise RecordingError(f"cannot create {out}: {error.strerror}", fix="choose another name") from error
    try:
        with file:
            file.writelines(frames)
    except BaseException as error:
        out.unlink(missing_ok=True)  # a part of it would look like a recording
        if isinstance(error, OSError):
            raise WriteFailed(f"cannot write {out}: {error.strerror}", fix="nothing of it was kept") from error
        raise
    return len(kept), lost


def _intact(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Offset and payload of each frame with a valid checksum, as far as looking for them is not made endless."""
    search, end = Search(data, MAX_SEARCHED + SEARCHED_PER_BYTE * len(data)), 0
    with contextlib.suppress(RecordingError):
        while (start := search.next(end)) is not None:
            payload = payload_at(data, start, start)
            assert payload is not None
            end = start + PREFIX.size + len(payload)
            yield start, payload


def _chained_anew(payloads: Sequence[bytes], lost: int) -> Iterator[bytes]:
    sealer = Sealer()
    header, *others = payloads
    yield from sealer.seal(split(header))
    if lost:
        yield from sealer.seal([Notice(0, "warning", f"salvaged: {lost} bytes were lost")])
    for payload in others:
        yield from sealer.seal(split(payload))
