"""One trial as its recording tells it; reading a recording for it is meant for another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import LAG_LIMIT_NS, Event, Follower, SourceError, events
from taxtui.errors import RecordingError
from taxtui.live.cell_state import CellState
from taxtui.live.state import RunState
from taxtui.terminal_text import clean

SLICE_BYTES: Final = 128 << 10
SHOWN: Final = 30
"""So many of the slowest trials are listed."""


@dataclass(slots=True)
class TrialStory:
    """What is told of one trial. Instants are of its worker's clock, as ``began_ns``; texts are as in the file."""

    trial: int
    cell: CellState
    began_unix_ns: int
    began_ns: int
    warm_up: bool = False
    sandbox: str = ""
    marks: list[events.Mark] = field(default_factory=list)
    phases: list[events.PhaseEnded] = field(default_factory=list)
    actions: list[events.Actions] = field(default_factory=list)
    end: events.TrialEnded | None = None  # None: it has not ended
    lag_p99_ns: int | None = None  # of the worst second beside it; None: no second was reported

    @property
    def last_ns(self) -> int:
        """The latest instant that is told of it."""
        ends = [phase.start_ns + phase.duration_ns for phase in self.phases]
        return max([self.began_ns, *ends, *(mark.at_ns for mark in self.marks), self.end.end_ns if self.end else 0])

    @property
    def durations_ns(self) -> list[int]:
        return [value for batch in self.actions if batch.step == events.ACTION for value in batch.duration_ns]

    @property
    def late(self) -> bool:
        """The measuring process was late in a second of it: its durations may be too long."""
        return self.lag_p99_ns is not None and self.lag_p99_ns > LAG_LIMIT_NS


class EndedTrial(NamedTuple):
    """A trial in a list of the slowest."""

    trial: int
    held_ns: int
    outcome: str
    cell: CellState


def read_story(path: Path, trial: int) -> TrialStory:
    """All that a recording tells of a trial.

    Raises:
        RecordingError: it is no recording, or does not hold the trial before any damage.
    """
    return story_of(_events(path), trial)


def story_of(told: Iterable[Event], trial: int) -> TrialStory:
    """As ``read_story``, of events. Raises ``RecordingError`` where they do not hold the trial."""
    state, found = RunState(), None
    for event in told:
        state.apply(event)
        if isinstance(event, events.TrialStarted) and event.trial == trial:
            cell = state.cells[event.cell]
            unix_ns = state.instant_unix_ns(event)
            found = TrialStory(trial, cell, unix_ns, event.start_ns, event.warm_up, clean(event.sandbox))
        elif found is None:
            continue
        elif isinstance(event, events.Health):
            found.lag_p99_ns = max(found.lag_p99_ns or 0, event.lag_p99_ns)
            if found.end is not None:  # the second in which it ended
                return found
        elif isinstance(event, events.Clock | events.Header) and found.end is not None:
            return found
        else:
            _take(found, event)
    if found is None:
        raise RecordingError(f"trial #{trial} is not in this recording")
    return found


def _take(story: TrialStory, event: Event) -> None:
    """What an event says of the trial, if it does."""
    match event:
        case events.Mark(trial=story.trial):
            story.marks.append(event)
        case events.PhaseEnded(trial=story.trial):
            story.phases.append(event)
        case events.Actions(trial=story.trial):
            story.actions.append(event)
        case events.TrialEnded(trial=story.trial):
            story.end = event


def slowest(paths: Iterable[Path], wanted: Callable[[CellState], bool]) -> list[tuple[Path, EndedTrial]]:
    """The counted trials of some cells that held their worker longest, the slowest first, with their recordings.

    Raises:
        SourceError: one is no recording.
    """
    found = ((path, one) for path in paths for one in _ended(_events(path), wanted))
    return nlargest(SHOWN, found, key=lambda one: one[1].held_ns)


def _ended(told: Iterable[Event], wanted: Callable[[CellState], bool]) -> Iterator[EndedTrial]:
    state = RunState()
    for event in told:
        if isinstance(event, events.TrialEnded) and (trial := state.open.get(event.trial)) and not trial.warm_up:
            cell = state.cells[trial.cell]
            if wanted(cell):
                yield EndedTrial(event.trial, trial.held_ns(event.end_ns), clean(event.outcome), cell)
        state.apply(event)


def _events(path: Path) -> Iterator[Event]:
    """Of the whole file, or all before its damage. Raises ``SourceError`` for what is no recording."""
    with Follower(path) as follower:
        while True:
            try:
                told = follower.poll(SLICE_BYTES)
            except SourceError:
                if follower.header is None:
                    raise
                return
            if not told:
                return
            yield from told
