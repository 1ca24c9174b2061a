"""Writes a recording: frames of events, appended by the run, never overwritten."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

import msgspec

from costmodel import SourceError, events, framing
from taxtui.errors import RecordingError, UsageError, WriteFailed

_E = TypeVar("_E", bound=events.Event)
_WITH_TEXT: Final = (
    events.Header,
    events.Cell,
    events.TrialStarted,
    events.Mark,
    events.TrialEnded,
    events.Notice,
    events.RunFinished,
)
_encode = msgspec.msgpack.Encoder().encode


class Recorder:
    """Appends events to a new file, with one ``write`` per frame and one ``fsync`` at the end."""

    def __init__(self, path: Path, *, append: bool = False) -> None:
        """Create the file, or with ``append`` continue a file with whole frames.

        Raises:
            UsageError: the file exists (taxtui never overwrites files), or the folder is missing or read-only.
            RecordingError: the file to continue is damaged.
        """
        self.path = path
        self._pending: list[events.Event] = []
        self._sealer = _behind(path) if append else Sealer()
        how = 0 if append else os.O_CREAT | os.O_EXCL
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | how, 0o644)
        except FileExistsError:
            raise UsageError(f"{path} exists", fix="choose another name with -o, nothing is overwritten") from None
        except OSError as error:
            raise UsageError(f"cannot create {path}: {error.strerror}", fix="choose another with -o") from error
        self.size_bytes = os.fstat(self._fd).st_size
        self._broken = self._closed = False

    def add(self, event: events.Event) -> None:
        """Queue an event. Header, TrialStarted and RunFinished are written at once, the last two frames apart.

        Text beyond a recording's bounds is cut. Raises as ``flush``.
        """
        event = bounded(event)
        if isinstance(event, events.Header | events.RunFinished):
            self.flush()
            self._pending.append(event)
            self.flush()
        else:
            self._pending.append(event)
            if isinstance(event, events.TrialStarted):
                self.flush()

    def flush(self) -> None:
        """Write the queued events.

        Raises:
            WriteFailed: the disk is full or gone, or another process has removed, replaced or changed the file.
                Earlier frames stay readable: a partial frame is cut off, and no more are written.
        """
        if not self._pending or self._broken:
            return
        self._check_ours()
        batch, self._pending = self._pending, []
        for data in self._sealer.seal(batch):
            self._write(data)

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
                f"cannot write {self.path}: {error.strerror}",
                fix=f"its first {self.size_bytes} bytes are intact, free some space and run again",
            ) from error
        self.size_bytes += len(data)

    def _check_ours(self) -> None:
        """Raise ``WriteFailed`` at once where another process has removed, replaced or changed the file."""
        ours = os.fstat(self._fd)
        try:
            current = self.path.stat()
        except OSError:
            change = "the file was removed or moved"
        else:
            if not os.path.samestat(current, ours):
                change = "another file is at this path"
            elif ours.st_size != self.size_bytes:
                change = f"another process changed the file from {self.size_bytes} to {ours.st_size} bytes"
            else:
                return
        self._broken = True
        raise WriteFailed(f"cannot continue {self.path}: {change}", fix="run again")

    def close(self) -> None:
        """Write the queued events and force them to the disk. Idempotent. Raises as ``flush``."""
        if self._closed:
            return
        self._closed = True
        try:
            self.flush()
            if not self._broken:
                self._check_ours()
                self._force()
        finally:
            os.close(self._fd)

    def _force(self) -> None:
        """Force the file to the disk: some file systems report a full disk late."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise WriteFailed(
                f"cannot write {self.path}: {error.strerror}", fix="`taxtui recordings verify` shows the intact part"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _behind(path: Path) -> Sealer:
    """Return a sealer for frames after the frames of a file."""
    sealer, parser = Sealer(), framing.FrameParser()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                for _, payload in parser.feed(chunk):
                    sealer.add(payload)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except SourceError as error:
        raise RecordingError(f"{path}: {error.problem}", error.offset) from error
    return sealer


class Sealer:
    """Makes the frames of one file, each linked to the last."""

    def __init__(self) -> None:
        self._frames = 0
        self._link: events.Link | None = None  # to the last frame

    def seal(self, batch: Sequence[events.Event | msgspec.Raw]) -> list[bytes]:
        """Return events as frames, as few as the bounds on size and count allow.

        Raises:
            RecordingError: a single event is too large.
        """
        links = [] if self._link is None else [self._link]
        if len(batch) < framing.MAX_EVENTS:
            payload = _encode([*links, *batch])
            if len(payload) + framing.CRC_BYTES <= framing.MAX_LENGTH:
                self.add(payload)
                return [framing.frame(payload)]
            if len(batch) == 1:
                raise RecordingError(
                    f"one event of {len(payload)} bytes does not fit a frame of {framing.MAX_LENGTH} bytes"
                )
        half = len(batch) // 2
        return self.seal(batch[:half]) + self.seal(batch[half:])

    def add(self, payload: bytes) -> None:
        """Count a written frame: the next frame has a link to the last."""
        self._frames += 1
        self._link = events.Link(self._frames, zlib.crc32(payload))


def bounded(event: _E) -> _E:
    """Return the event with texts cut to the bounds of a recording."""
    if not isinstance(event, _WITH_TEXT):
        return event
    changes: dict[str, object] = {}
    longest = events.MAX_LABEL if isinstance(event, events.Cell) else events.MAX_TEXT
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, str) and len(value) > longest:
            changes[name] = cut(value, longest)
        elif name == "software":
            changes[name] = {cut(key): cut(fact) for key, fact in list(value.items())[: events.MAX_FACTS]}
        elif name == "capabilities" and value:
            changes[name] = tuple(cut(text, longest) for text in value[: events.MAX_CAPABILITIES])
    return msgspec.structs.replace(event, **changes) if changes else event


def cut(text: str, longest: int = events.MAX_TEXT) -> str:
    """Return the text, or the beginning of a too long text with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
