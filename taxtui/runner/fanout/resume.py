"""Resumption of a run after an early end: the missing trials, and whether the file may be continued."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import astuple

from costmodel import Follower, events
from taxtui import folders
from taxtui.errors import UsageError
from taxtui.plan.spec import Plan
from taxtui.runner import identity
from taxtui.runner.arrivals import Block
from taxtui.runner.cleanup import ledger

AGAIN: Final = frozenset({events.CANCELLED, events.INTERRUPTED})
"""Outcomes of trials to run again."""
WHOLE: Final = "finished"
_OPTIONAL: Final = {"repeat", "workers", "lifecycle"}
"""Keys of a plan that ``identity.describe`` may leave out."""


class ResumeState:
    """A recording to continue, and the missing trials."""

    def __init__(self, path: Path, plan: Plan | None = None) -> None:
        """Read the file and change nothing. With ``plan``, require the same run.

        Raises:
            RecordingError: the file is damaged or no recording.
            UsageError: the run has finished or still continues, has another plan, or has an invalid run id.
        """
        self.path = path
        self.run_id = ""
        self.worker = 0  # first free number of a worker
        self.first_trial = 0
        self.sandboxes = 0  # made so far
        self.repetition = 0  # the last one begun
        self.counts: Counter[str] = Counter()  # ended trials by outcome, without warm-ups
        self.ok_of: Counter[int] = Counter()  # successes by cell
        self._finished: Counter[tuple[int, int]] = Counter()  # trials of this repetition by cell and block
        self._cells: dict[int, events.Cell] = {}
        self._open: dict[int, events.TrialStarted] = {}
        self._outcome = ""
        with Follower(path) as follower:
            while batch := follower.poll():
                for event in batch:
                    self._take(event)
            header = follower.finish()
        self._end = follower.last_offset if self._outcome else follower.offset  # of the frames to keep
        if not follower.chained and follower.frames > 1:
            raise UsageError(f"{path}: of an early version, whose frames are not chained", fix="start another run")
        self.run_id = folders.require_run_id(header.run_id, str(path))
        if plan is not None:
            self._require(plan, header)

    def _take(self, event: events.Event) -> None:
        if isinstance(event, events.TrialStarted):
            if event.repetition > self.repetition:
                self.repetition = event.repetition
                self._finished.clear()
            self._open[event.trial] = event
            self.first_trial = max(self.first_trial, event.trial + 1)
            self.sandboxes += 1
        elif isinstance(event, events.TrialEnded):
            started = self._open.pop(event.trial, None)
            if started is not None and not started.warm_up:
                self.counts[event.outcome] += 1
                self.ok_of[started.cell] += event.outcome == events.OK
                self._finished[started.cell, started.block] += event.outcome not in AGAIN
        elif isinstance(event, events.Cell):
            self._cells[event.id] = event
        elif isinstance(event, events.Clock):
            self.worker = max(self.worker, event.worker + 1)
        elif isinstance(event, events.RunFinished):
            self._outcome = event.outcome

    def _require(self, plan: Plan, header: events.Header) -> None:
        if self._outcome == WHOLE:
            raise UsageError(f"{self.path}: the run has finished", fix="there is nothing to resume; start another")
        if self.run_id in ledger.live_runs():
            raise UsageError(f"{self.path}: the run is in progress", fix="wait for the end, or stop the run")
        if plan.max_cost_usd is not None:
            raise UsageError("the cost of the first part is unknown", fix="leave max_cost_usd out, or start another")
        was, now = msgspec.to_builtins(header.scenario), msgspec.to_builtins(identity.describe(plan))
        if unknown := set(was) - set(now) - _OPTIONAL:
            raise UsageError(
                f"{self.path} was begun by an earlier taxtui: its plan has {min(unknown)}", fix="start another run"
            )
        if plan.repeat > 1:  # a repetition's budget is a share of the remaining budget
            was, now = ({**scenario, "budget_s": None} for scenario in (was, now))
        if differing := _difference(was, now):
            raise UsageError(
                f"{self.path} is of another plan: {differing}", fix="use the scenario and options of the recording"
            )

    @property
    def ended(self) -> int:
        """Number of ended trials, without those to run again."""
        return sum(count for outcome, count in self.counts.items() if outcome not in AGAIN)

    def remaining(self, order: Sequence[Block]) -> list[Block]:
        counts = [(block, self._finished[block.cell, block.number]) for block in order]
        return [block._replace(trials=block.trials - n, before=n) for block, n in counts if block.trials > n]

    def prepare_append(self, cells: Sequence[events.Cell]) -> None:
        """Cut the run's end and a torn frame off the file, to append frames.

        Raises:
            UsageError: cells are missing, or would differ in this environment. The file is unchanged.
        """
        for cell in cells:
            was = self._cells.get(cell.id)
            if was is None:
                raise UsageError(f"{self.path} ends before its cells are described", fix="start another run")
            for field, before, now in zip(cell.__struct_fields__, astuple(was), astuple(cell), strict=True):
                if before != now:
                    change = f"{field}: {before!r}, now {now!r}"
                    raise UsageError(
                        f"{self.path} was measured in another environment: {change}", fix="start another run"
                    )
        os.truncate(self.path, self._end)


def _difference(was: object, now: object, place: str = "") -> str:
    """Return the first difference of two plain values, as ``cells.0.trials: 5, now 6``; "" where they are equal."""
    if isinstance(was, dict) and isinstance(now, dict):
        pairs = [(key, was.get(key), now.get(key)) for key in [*was, *now]]
    elif isinstance(was, list | tuple) and isinstance(now, list | tuple) and len(was) == len(now):
        pairs = [(number, *both) for number, both in enumerate(zip(was, now, strict=True))]
    else:
        return "" if was == now else f"{place}: {was!r}, now {now!r}"
    return next(filter(None, (_difference(a, b, f"{place}.{key}".lstrip(".")) for key, a, b in pairs)), "")
