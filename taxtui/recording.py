"""The recording: frames of events, appended by the run, followed live by the TUI, read back by everything else."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

import msgspec

from taxtui.errors import RecordingError, UsageError, WriteFailed
from taxtui.events import FORMAT_VERSION, MAGIC, Event, Header, RunFinished, TrialStarted
from taxtui.frames import PREFIX, FrameParser, decode, encode, next_valid, payload_at

SYNC_INTERVAL_S: Final = 1.0


class Recorder:
    """Appends events to a new file; one ``write`` per frame, ``fsync`` once a second from a thread of its own."""

    def __init__(self, path: Path) -> None:
        """Create the file.

        Raises:
            UsageError: it exists (it is never overwritten), or its folder does not or is read-only.
        """
        self.path = path
        self._pending: list[Event] = []
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            raise UsageError(f"{path} exists; choose another name with -o, nothing is overwritten") from None
        except OSError as error:
            raise UsageError(f"cannot create {path}: {error.strerror}; choose another with -o") from error
        self.size_bytes = 0
        self._broken = False
        self._sync_error: OSError | None = None
        self._dirty = threading.Event()
        self._closed = threading.Event()
        self._syncer = threading.Thread(target=self._sync, name="taxtui-fsync", daemon=True)
        try:
            self._syncer.start()
        except BaseException:  # interrupted, or no more threads: an empty file would be in the way of the next try
            os.close(self._fd)
            path.unlink(missing_ok=True)
            raise

    def add(self, event: Event) -> None:
        """Queue an event. Header, TrialStarted and RunFinished are written at once, the last two frames apart."""
        if isinstance(event, Header | RunFinished):
            self.flush()
            self._pending.append(event)
            self.flush()
        else:
            self._pending.append(event)
            if isinstance(event, TrialStarted):
                self.flush()

    def flush(self) -> None:
        """Write what is queued.

        Raises:
            WriteFailed: the disk is full or gone. What was written before stays readable: a frame that went
                out in part is cut off again, and nothing more is written.
        """
        if not self._pending or self._broken:
            return
        self._check_synced()
        events, self._pending = self._pending, []
        for data in encode(events):
            self._write(data)
        self._dirty.set()

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._fd, data)
            if written < len(data):  # a signal or the last block of a full disk
                written += os.write(self._fd, data[written:])
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._broken = True
            os.ftruncate(self._fd, self.size_bytes)
            raise WriteFailed(
                f"cannot write {self.path}: {error.strerror}; "
                f"its first {self.size_bytes} bytes are intact, free some space and run again"
            ) from error
        self.size_bytes += len(data)

    def _check_synced(self) -> None:
        """Some file systems take every write and find out later that they are full."""
        if self._sync_error is not None and not self._broken:
            self._broken = True
            raise WriteFailed(
                f"cannot write {self.path}: {self._sync_error.strerror}; "
                "`taxtui recordings verify` says what is left of it"
            ) from self._sync_error

    def close(self) -> None:
        """Write what is queued and force it to the disk. Idempotent. Raises as ``flush``."""
        if self._closed.is_set():
            return
        try:
            self.flush()
        finally:
            self._closed.set()
            self._dirty.set()
            self._syncer.join()
            os.close(self._fd)
        self._check_synced()

    def _sync(self) -> None:
        try:
            while True:
                self._dirty.wait()
                self._dirty.clear()
                os.fsync(self._fd)
                if self._closed.wait(SYNC_INTERVAL_S):
                    os.fsync(self._fd)
                    return
        except OSError as error:
            self._sync_error = error  # for whoever writes or closes next

    def __enter__(self) -> Self:
        """The recorder itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close it."""
        self.close()


class Follower:
    """Reads a recording while it is being written, and afterwards."""

    CHUNK_BYTES: Final = 1 << 20

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            RecordingError: there is no such file, or it cannot be read.
        """
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise RecordingError(f"cannot read {path}: {error.strerror}") from error
        self.path = path
        self.header: Header | None = None
        self.complete = False  # RunFinished was seen
        self.skipped = 0  # events that this version does not understand
        self.frames = 0
        self._begun = False  # a first byte was read
        self._parser = FrameParser()
        self._damage: RecordingError | None = None  # to be raised once the events before it are handed out

    @property
    def offset(self) -> int:
        """Where the next frame begins: bytes of complete frames up to what was read last."""
        return self._parser.offset

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

    def resume(self, offset: int) -> None:
        """Go on at ``offset``, where a frame begins; the header must have been read before."""
        self._file.seek(offset)
        self._parser = FrameParser(offset)
        self._damage = None
        self.complete = False

    def _events(self, offset: int, payload: bytes) -> list[Event]:
        self.frames += 1
        events, unknown = decode(payload, offset)
        self.skipped += unknown
        if self.header is None:
            self._check_header(events, offset)
        if events and isinstance(events[-1], RunFinished):
            self.complete = True
        return events

    def _check_header(self, events: list[Event], offset: int) -> None:
        first = events[0] if events else None
        if not isinstance(first, Header) or first.magic != MAGIC:
            raise RecordingError("not a taxtui recording: it has no header", offset)
        if first.version > FORMAT_VERSION:
            raise RecordingError(
                f"format version {first.version}, this taxtui reads up to {FORMAT_VERSION}; install a newer taxtui",
                offset,
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

    def summary(self, events: int) -> Summary:
        """What the whole file turned out to be, once all its events have been handed out. Raises ``RecordingError``."""
        torn = self.finish()
        assert self.header is not None  # finish() has checked it
        return Summary(
            header=self.header,
            complete=self.complete,
            frames=self.frames,
            events=events,
            skipped=self.skipped,
            torn_bytes=torn,
            size_bytes=self.offset + torn,
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


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole file turned out to be."""

    header: Header
    complete: bool  # it ends with RunFinished
    frames: int
    events: int
    skipped: int
    torn_bytes: int
    size_bytes: int


def read(path: Path, apply: Callable[[Event], object]) -> Summary:
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

    Raises:
        RecordingError: it cannot be read, no header frame is left, or ``out`` exists.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}") from error
    kept: list[bytes] = []
    first: Event | None = None
    end = 0
    while (start := next_valid(data, end)) is not None:
        payload = payload_at(data, start, start)
        assert payload is not None
        end = start + PREFIX.size + len(payload)
        with contextlib.suppress(RecordingError):  # a valid checksum over what no reader would take is no intact frame
            events = decode(payload, start).events
            first = first if kept else next(iter(events), None)
            kept.append(data[start:end])
    if not isinstance(first, Header):
        raise RecordingError(f"{path}: its header is lost, nothing can be salvaged", 0)
    try:
        with out.open("xb") as file:
            file.writelines(kept)
    except OSError as error:
        raise RecordingError(f"cannot create {out}: {error.strerror}; choose another name") from error
    return len(kept), len(data) - sum(map(len, kept))
