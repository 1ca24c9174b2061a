"""Writes a smaller recording with the same events: one piece for the actions of a step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from costmodel import (
    Actions,
    Clock,
    Event,
    Follower,
    Header,
    RecordingSummary,
    RunFinished,
    SourceError,
    TrialEnded,
    events,
    framing,
)
from taxtui.errors import WriteFailed
from taxtui.recording.writer import Recorder

COLUMNS: Final = {
    "gap_ns": 0,
    "think_ns": 0,
    "duration_ns": 0,
    "run_ns": 0,
    "exit_code": 0,
    "stdout_bytes": 0,
    "stderr_bytes": 0,
    "cpu_ns": events.UNKNOWN,
    "wrapper_ns": events.UNKNOWN,
}
"""Columns of actions, each with the value of an empty column."""
MAX_ROWS: Final = 8192
"""Most rows of one event, to fit a frame with any values."""

_encode = msgspec.msgpack.Encoder().encode


def compact(path: Path, out: Path) -> RecordingSummary:
    """Write the events of ``path`` to a new file ``out``; return the facts of ``path``.

    A run writes ended actions every quarter of a second, so that a crash loses little. The compact file has
    one event for the actions of a step, right before the next event of the trial; a replay shows them when the step
    ends. A frame ends where a trial starts or ends. A torn tail is left out.

    Raises:
        SourceError: the file is damaged, no recording, or has events that this version would lose.
        UsageError: ``out`` exists or cannot be created.
        WriteFailed: the disk is full. After any error ``out`` is removed.
    """
    with _Exact(path) as follower:
        recorder = Recorder(out)
        try:
            with recorder:
                pieces = _Pieces()
                while events := follower.poll():
                    for event in events:
                        for ready in pieces.after(event):
                            recorder.add(ready)
                        if isinstance(event, TrialEnded):
                            recorder.flush()
                summary = follower.summary()
                for whole in pieces.rest():
                    recorder.add(whole)
        except BaseException as error:
            out.unlink(missing_ok=True)
            if isinstance(error, WriteFailed) and isinstance(error.__cause__, OSError):
                problem = f"cannot write {out}: {error.__cause__.strerror}"
                raise WriteFailed(problem, fix="the new file was removed; free some space") from error
            raise
        return summary


class _Exact(Follower):
    """Refuses events with fields unknown to this version."""

    def take(self, offset: int, payload: bytes) -> list[Event]:
        events = super().take(offset, payload)
        raws = framing.split(payload)
        if len(events) < len(raws) or any(map(_is_shorter, events, raws)):
            problem = f"a newer version wrote the events at byte {offset}"
            raise SourceError(problem, offset, fix="install a newer taxtui")
        return events


def _is_shorter(event: Event, raw: msgspec.Raw) -> bool:
    return len(_encode(event)) < len(bytes(raw))


class _Pieces:
    """The actions of steps in progress."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[Actions]] = {}

    def after(self, event: Event) -> Iterator[Event]:
        """Yield the events to write after reading ``event``: ended steps, and any event but actions."""
        if isinstance(event, Actions):
            pieces = self._waiting.setdefault(event.trial, [])
            if pieces and not _continue(pieces, event):
                yield _joined(pieces)
                pieces.clear()
            pieces.append(event)
            return
        if isinstance(event, Header | Clock | RunFinished):  # the next events count from another clock
            yield from self.rest()
        elif (trial := getattr(event, "trial", None)) is not None and trial in self._waiting:
            yield _joined(self._waiting.pop(trial))
        yield event

    def rest(self) -> Iterator[Actions]:
        """Yield the actions of all steps in progress."""
        yield from map(_joined, self._waiting.values())
        self._waiting.clear()


def _continue(pieces: list[Actions], event: Actions) -> bool:
    last = pieces[-1]
    return (last.step, last.first + len(last.duration_ns)) == (event.step, event.first) and event.first + len(
        event.duration_ns
    ) - pieces[0].first <= MAX_ROWS


def _joined(pieces: list[Actions]) -> Actions:
    if len(pieces) == 1:
        return pieces[0]
    whole = {
        name: [
            value for piece in pieces for value in events.column(getattr(piece, name), len(piece.duration_ns), empty)
        ]
        for name, empty in COLUMNS.items()
    }
    return msgspec.structs.replace(
        pieces[0],
        **{
            name: values if name == "duration_ns" else events.sparse(values, COLUMNS[name])
            for name, values in whole.items()
        },
    )
