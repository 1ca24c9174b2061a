"""A smaller recording with the same numbers: what a run wrote of a trial's actions piece by piece, in one piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from taxtui.errors import RecordingError, WriteFailed
from taxtui.events import Actions, Clock, Event, Header, RunFinished, TrialEnded, column, sparse
from taxtui.recording import Follower, Recorder, Summary

COLUMNS: Final = ("gap_ns", "think_ns", "duration_ns", "run_ns", "exit_code", "stdout_bytes", "stderr_bytes")
MAX_ROWS: Final = 8192
"""Of one event: whatever their values, they fit a frame."""

_encode = msgspec.msgpack.Encoder().encode
_decode_untyped = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


def compact(path: Path, out: Path) -> Summary:
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
                        for whole in pieces.before(event):
                            recorder.add(whole)
                        if not pieces.take(event):
                            recorder.add(event)
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
        told = _decode_untyped(payload)
        # a field or an event that a newer version has added
        if len(events) < len(told) or any(map(_is_shorter, events, told)):
            raise RecordingError(f"at byte {offset} there is what this taxtui does not know; use a newer one", offset)
        return events


def _is_shorter(event: Event, told: msgspec.Raw) -> bool:
    return len(_encode(event)) < len(bytes(told))


class _Pieces:
    """The actions that wait for the rest of their step."""

    def __init__(self) -> None:
        self._waiting: dict[int, Actions] = {}

    def take(self, event: Event) -> bool:
        """Keep a piece."""
        if not isinstance(event, Actions):
            return False
        before = self._waiting.get(event.trial)
        self._waiting[event.trial] = event if before is None else _joined(before, event)
        return True

    def before(self, event: Event) -> Iterator[Actions]:
        """What has to be told before an event: the trial goes on, or what follows counts from another clock."""
        if isinstance(event, Header | Clock | RunFinished):
            yield from self.rest()
        elif (trial := getattr(event, "trial", None)) in self._waiting:
            assert trial is not None
            if not isinstance(event, Actions) or not _continues(self._waiting[trial], event):
                yield self._waiting.pop(trial)

    def rest(self) -> Iterator[Actions]:
        """Everything that waits."""
        while self._waiting:
            yield self._waiting.pop(next(iter(self._waiting)))


def _continues(before: Actions, after: Actions) -> bool:
    return (
        (before.step, before.first + len(before.duration_ns)) == (after.step, after.first)
        and len(before.duration_ns) + len(after.duration_ns) <= MAX_ROWS
        and _even(before)
        and _even(after)
    )


def _even(piece: Actions) -> bool:
    """Every column has a value per row, or none."""
    return {len(getattr(piece, name)) for name in COLUMNS} <= {0, len(piece.duration_ns)}


def _joined(before: Actions, after: Actions) -> Actions:
    rows = len(before.duration_ns), len(after.duration_ns)
    columns = {name: column(getattr(before, name), rows[0]) + column(getattr(after, name), rows[1]) for name in COLUMNS}
    whole = {name: values if name == "duration_ns" else sparse(values) for name, values in columns.items()}
    return msgspec.structs.replace(before, **whole)
