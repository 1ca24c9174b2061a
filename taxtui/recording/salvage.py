"""Copies the intact frames of a damaged recording."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from costmodel import Causality, Event, Header, Notice, SourceError, framing, read_regular
from taxtui.errors import RecordingError, WriteFailed
from taxtui.recording.writer import Sealer

MAX_BYTES: Final = 4 << 30
"""Highest size of a damaged file, which is searched in memory."""
SEARCHED_PER_BYTE: Final = 128
"""Most false beginnings for each byte of a damaged file, added to ``MAX_SEARCHED``: 0.1 s a MB."""


def salvage(path: Path, out: Path) -> tuple[int, int]:
    """Copy the intact frames of a damaged recording to a new file; return (frames kept, bytes lost).

    Chained frames are chained again, after a notice of the lost bytes.

    Raises:
        RecordingError: the file is unreadable, the header is lost, or ``out`` exists.
        WriteFailed: the disk is full; ``out`` is removed.
    """
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}") from error
    payloads: list[bytes] = []
    first: Event | None = None
    chained, causality = False, Causality()
    frames = framing.intact_frames(data, 0, framing.MAX_SEARCHED + SEARCHED_PER_BYTE * len(data))
    with contextlib.suppress(SourceError):  # the search gives up
        for start, payload in frames:
            # A frame refused by readers is not intact, even with a valid checksum.
            with contextlib.suppress(ValueError):
                batch = framing.decode(payload, start)
                first = first if payloads else next(iter(batch.events), None)
                if payloads and isinstance(next(iter(batch.events), None), Header):
                    break  # another recording was appended
                causality.add(batch.events)
                chained |= batch.link is not None
                payloads.append(payload)
    if not isinstance(first, Header):
        raise RecordingError(f"{path}: the header is lost, nothing can be salvaged", 0)
    lost = len(data) - sum(framing.PREFIX.size + len(payload) for payload in payloads)
    kept = _chained_anew(payloads, lost) if chained else map(framing.frame, payloads)
    try:
        file = out.open("xb")
    except OSError as error:
        raise RecordingError(f"cannot create {out}: {error.strerror}", fix="choose another name") from error
    try:
        with file:
            file.writelines(kept)
    except BaseException as error:
        out.unlink(missing_ok=True)  # part of a file would look like a recording
        if isinstance(error, OSError):
            raise WriteFailed(
                f"cannot write {out}: {error.strerror}", fix="the new file was removed; free some space"
            ) from error
        raise
    return len(payloads), lost


def _chained_anew(payloads: Sequence[bytes], lost: int) -> Iterator[bytes]:
    sealer = Sealer()
    header, *rest = payloads
    yield from sealer.seal(framing.split(header))
    if lost:
        yield from sealer.seal([Notice(0, "warning", f"salvaged: {lost} bytes were lost")])
    for payload in rest:
        yield from sealer.seal(framing.split(payload))
