"""One trial as recorded, and the slowest trials. Read recordings in a thread of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import Follower, SourceError, events
from taxtui.errors import RecordingError
from taxtui.live.cell_state import CellState
from taxtui.live.state import RunState
from taxtui.terminal_text import clean

SLICE_BYTES: Final = 128 << 10
SHOWN: Final = 30
"""Number of the slowest trials in a list."""


@dataclass(slots=True)
class TrialStory:
    """The events of one trial. Instants count from the worker's clock, as ``began_ns``; texts are as in the file."""

    trial: int
    cell: CellState
    began_unix_ns: int
    began_ns: int
    warm_up: bool = False
    sandbox: str = ""
    marks: list[events.Mark] = field(default_factory=list)
    phases: list[events.PhaseEnded] = field(default_factory=list)
    actions: list[events.Actions] = field(default_factory=list)
    end: events.TrialEnded | None = None  # None: in flight

    @property
    def last_ns(self) -> int:
        """The latest instant in the events."""
        ends = [phase.start_ns + phase.duration_ns for phase in self.phases]
        return max([self.began_ns, *ends, *(mark.at_ns for mark in self.marks), self.end.end_ns if self.end else 0])

    @property
    def durations_ns(self) -> list[int]:
        return [value for batch in self.actions if batch.step == events.ACTION for value in batch.duration_ns]


class EndedTrial(NamedTuple):
    """A trial in a list of the slowest."""

    trial: int
    held_ns: int
    outcome: str
    cell: CellState


def read_story(path: Path, trial: int) -> TrialStory:
    """Return the events of a trial.

    Raises:
        RecordingError: the file is no recording, or lacks the trial before any damage.
    """
    state, story = RunState(), None
    for event in _events(path):
        state.apply(event)
        if isinstance(event, events.TrialStarted) and event.trial == trial:
            cell = state.cells[event.cell]
            unix_ns = state.instant_unix_ns(event)
            story = TrialStory(trial, cell, unix_ns, event.start_ns, event.warm_up, clean(event.sandbox))
        elif story is None:
            continue
        match event:
            case events.Mark(trial=story.trial):
                story.marks.append(event)
            case events.PhaseEnded(trial=story.trial):
                story.phases.append(event)
            case events.Actions(trial=story.trial):
                story.actions.append(event)
            case events.TrialEnded(trial=story.trial):
                story.end = event
                break
    if story is None:
        raise RecordingError(f"trial #{trial} is not in this recording")
    return story


def slowest(paths: Iterable[Path], wanted: Callable[[CellState], bool]) -> list[tuple[Path, EndedTrial]]:
    """Return the counted trials of some cells with the longest occupied times, slowest first, with the recordings.

    Raises:
        SourceError: a file is no recording.
    """
    trials = ((path, trial) for path in paths for trial in _ended(path, wanted))
    return nlargest(SHOWN, trials, key=lambda item: item[1].held_ns)


def _ended(path: Path, wanted: Callable[[CellState], bool]) -> Iterator[EndedTrial]:
    state = RunState()
    for event in _events(path):
        if (
            isinstance(event, events.TrialEnded)
            and (trial := state.open.get(event.trial))
            and not trial.started.warm_up
        ):
            cell = state.cells[trial.started.cell]
            if wanted(cell):
                yield EndedTrial(event.trial, trial.held_ns(event.end_ns), clean(event.outcome), cell)
        state.apply(event)


def _events(path: Path) -> Iterator[events.Event]:
    """Yield the events of a file, up to any damage. Raises ``SourceError``: the file is no recording."""
    with Follower(path) as follower:
        while True:
            try:
                batch = follower.poll(SLICE_BYTES)
            except SourceError:
                if follower.header is None:
                    raise
                return
            if not batch:
                return
            yield from batch
