"""Events at both ends of a recording, without reading the middle."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from costmodel import Cell, Clock, Event, Header, SourceError, TrialStarted, events, framing

END_BYTES: Final = 64 << 10
"""Bytes read at each end of a file."""
LATEST_FRAMES: Final = 4
"""Frames at the end of a file, whose events give the latest instant."""


def head_of(file: BinaryIO) -> bytes:
    """Return the beginning of a file with its whole first frame, however large."""
    head = file.read(END_BYTES)
    with contextlib.suppress(SourceError):
        if len(head) == END_BYTES and framing.payload_at(head, 0, 0) is None:
            head += file.read(framing.PREFIX.size + framing.MAX_LENGTH)
    return head


def header_of(head: bytes) -> Header | None:
    """Return the header in the first frame; None where the frame is torn or has something else."""
    with contextlib.suppress(SourceError):
        payload = framing.payload_at(head, 0, 0)
        first = next(iter(framing.decode(payload, 0).events), None) if payload else None
        if isinstance(first, Header) and first.magic == events.MAGIC:
            return first
    return None


def opening(head: bytes) -> Iterator[Event]:
    """Yield the events before the first trial, which describe the run. Raises ``SourceError``."""
    start = 0
    while (payload := framing.payload_at(head, start, start)) is not None:
        for event in framing.decode(payload, start).events:
            if isinstance(event, Header | Clock | Cell):
                yield event
            elif isinstance(event, TrialStarted):
                return
        start += framing.PREFIX.size + len(payload)


def latest(tail: bytes, tail_start: int) -> Iterator[Event]:
    """Yield the events of the last frames, without a torn frame at the end.

    Raises:
        SourceError: bytes between or behind frames are no frame, or bytes in a frame are no event.
    """
    frames: list[tuple[int, bytes]] = []  # offset in the file, and payload
    end: int | None = 0 if tail_start == 0 else None  # of the frame before; unknown at the beginning of the tail
    for start, payload in framing.intact_frames(tail):
        if end is not None and start != end:
            framing.payload_at(tail, end, tail_start + end)  # raises, unless the frame is torn
            raise framing.damaged(tail_start + end, "intact frames follow")
        frames.append((tail_start + start, payload))
        end = start + framing.PREFIX.size + len(payload)
    if end is not None:
        framing.payload_at(tail, end, tail_start + end)
    last = frames[-LATEST_FRAMES:]
    chain = framing.Chain(within=bool(last) and last[0][0] > 0)
    for offset, payload in last:
        batch = framing.decode(payload, offset)
        chain.add(batch, payload, offset)
        yield from batch.events
