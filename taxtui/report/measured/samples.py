"""The exact samples behind the tables: every duration of every successful trial of a cell."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

from costmodel.recording import CellIdentity
from taxtui.live.state import MAX_CPU_PERMILLE, MAX_LAG_NS
from taxtui.recording import events

PER_ACTION: Final = ("action", "run", "dispatch")
PER_TRIAL: Final = (
    "create",
    "ready",
    "orchestration",
    "preload",
    "setup",
    "run_total",
    "dispatch_total",
    "unsplit_total",
    "harness",
    "cold_start",
    "fresh_episode",
    "trajectory",
    "amortized_per_action",
    "ready_again",
    "queued",
    "think",
    "held",
    "cleanup",
)


class Column:
    """One kind of duration in ns: the values of the first successful trial, of the second, and so on."""

    __slots__ = ("sizes", "values")

    def __init__(self) -> None:
        """Begin without a trial."""
        self.values = array("q")
        self.sizes = array("q")  # values per trial: 0 where it is unknown, 1, or one per action

    def add(self, values: Sequence[int]) -> None:
        """The values of one more trial."""
        self.values.extend(values)
        self.sizes.append(len(values))


class MeasuredAttempt(NamedTuple):
    """What one counted trial, good or bad, took of its worker. Durations are int ns."""

    run_id: str
    block: int
    ok: bool
    held_ns: int
    think_ns: int
    work_ns: int  # the commands' own time, setup included; UNKNOWN where it is for one of them
    dispatch_ns: int  # the rest of every command; meaningless where work_ns is UNKNOWN


class Source(NamedTuple):
    """One recording, and whether it can be believed."""

    name: str
    run_id: str
    complete: bool  # it ends with RunFinished, and nothing of it is missing
    trials: int  # counted ones
    lag_p99_ns: int  # over the seconds' p99
    cpu_permille: int  # median
    floor_ns: int

    @property
    def distorted(self) -> bool:
        """Whether the measuring process was too busy."""
        return self.lag_p99_ns > MAX_LAG_NS or self.cpu_permille > MAX_CPU_PERMILLE


class MeasuredCell:
    """All counted trials of one cell: those that were neither warm-ups nor cancelled nor interrupted."""

    __slots__ = ("attempts", "columns", "event", "identity", "sources")

    def __init__(self, event: events.Cell) -> None:
        """A cell without trials."""
        self.event = event
        self.identity = identity_of(event)
        self.sources: list[Source] = []
        self.attempts: list[MeasuredAttempt] = []
        self.columns = {name: Column() for name in PER_TRIAL + PER_ACTION}

    @property
    def failures(self) -> int:
        """Trials that failed or timed out."""
        return sum(not attempt.ok for attempt in self.attempts)


def identity_of(event: events.Cell) -> CellIdentity:
    """What decides whether two cells pool."""
    return CellIdentity(*(getattr(event, field) for field in CellIdentity._fields))
