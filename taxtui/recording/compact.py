"""A smaller recording with the same numbers: what a run wrote of a trial's actions piece by piece, in one piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from taxtui.errors import RecordingError, WriteFailed
from taxtui.recording.events import UNKNOWN, Actions, Clock, Event, Header, RunFinished, TrialEnded, column, sparse
from taxtui.recording.frames import split
from taxtui.recording.reader import Follower, RecordingSummary
from taxtui.recording.writer import Recorder

COLUMNS: Final = {
    "gap_ns": 0,
    "think_ns": 0,
    "duration_ns": 0,
    "run_ns": 0,
    "exit_code": 0,
    "stdout_bytes": 0,
    "stderr_bytes": 0,
    "cpu_ns": UNKNOWN,
    "wrapper_ns": UNKNOWN,
}
"""Of actions, each with what an empty one stands for."""
MAX_ROWS: Final = 8192
"""Of one event: whatever their values, they fit a frame."""

_encode = msgspec.msgpack.Encoder().encode


def compact(path: Path, out: Path) -> RecordingSummary:
    """Write the events of ``path`` to a new file ``out``; what ``path`` turned out to be.

    A run writes the actions that ended every quarter of a second, so that it can be watched and that little is lost
    when it dies. Here those of one step of a trial are one event, right before what follows them in that trial, and a
    replay shows them when the step ends. A frame ends where a trial starts or ends. A torn tail is left out.

    Raises:
        RecordingError: it is damaged, no recording, or holds what this version does not know and would lose.
        UsageError: ``out`` exists or cannot be created.
        WriteFailed: the disk is full. As after any error, there is no ``out`` then.
    """
    with _Exact(path) as follower:
        told = follower.poll()
        recorder = Recorder(out)
        try:
            with recorder:
                pieces = _Pieces()
                count = 0
                while told:
                    for event in told:
                        for ready in pieces.after(event):
                            recorder.add(ready)
                        if isinstance(event, TrialEnded):
                            recorder.flush()
                    count += len(told)
                    told = follower.poll()
                summary = follower.summary(count)
                for whole in pieces.rest():
                    recorder.add(whole)
        except BaseException as error:
            out.unlink(missing_ok=True)
            if isinstance(error, WriteFailed) and isinstance(error.__cause__, OSError):
                why = f"cannot write {out}: {error.__cause__.strerror}; nothing of it was kept, free some space"
                raise WriteFailed(why) from error
            raise
        return summary


class _Exact(Follower):
    """Refuses what would be lost when it is written again."""

    def _events(self, offset: int, payload: bytes) -> list[Event]:
        events = super()._events(offset, payload)
        told = split(payload)
        # a field or an event that a newer version has added
        if len(events) < len(told) or any(map(_is_shorter, events, told)):
            raise RecordingError(
                f"at byte {offset} there is what this taxtui does not know", offset, fix="use a newer one"
            )
        return events


def _is_shorter(event: Event, told: msgspec.Raw) -> bool:
    return len(_encode(event)) < len(bytes(told))


class _Pieces:
    """The actions that wait for the rest of their step."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[Actions]] = {}

    def after(self, event: Event) -> Iterator[Event]:
        """What can be written now that an event is known: what had to be told before it, and all but actions itself."""
        if isinstance(event, Actions):
            pieces = self._waiting.setdefault(event.trial, [])
            if pieces and not _continue(pieces, event):
                yield _joined(pieces)
                pieces.clear()
            pieces.append(event)
            return
        if isinstance(event, Header | Clock | RunFinished):  # what follows counts from another clock, or nothing does
            yield from self.rest()
        elif (trial := getattr(event, "trial", None)) is not None and trial in self._waiting:  # it goes on
            yield _joined(self._waiting.pop(trial))
        yield event

    def rest(self) -> Iterator[Actions]:
        """Everything that waits."""
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
        name: [value for piece in pieces for value in column(getattr(piece, name), len(piece.duration_ns), empty)]
        for name, empty in COLUMNS.items()
    }
    return msgspec.structs.replace(
        pieces[0],
        **{name: values if name == "duration_ns" else sparse(values, COLUMNS[name]) for name, values in whole.items()},
    )
