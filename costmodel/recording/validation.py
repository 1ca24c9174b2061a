"""Consistency rules for the events of a file, as in docs/recording-format.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from costmodel.recording.events import (
    BUILD,
    CLEANUP,
    CREATE,
    FORK,
    MAX_CELLS,
    MAX_DEPTH,
    MAX_VALUES,
    PRELOAD,
    READY,
    READY_AGAIN,
    RESET,
    SNAPSHOT,
    VERIFY,
    Actions,
    Cell,
    Event,
    Header,
    PhaseEnded,
    RunFinished,
    TrialEnded,
    TrialStarted,
)

AFTERWARDS: Final = frozenset({CLEANUP, VERIFY, SNAPSHOT, FORK, BUILD})
"""Phases that may end after their trial."""
IN_TURN: Final = frozenset({CREATE, RESET, READY, READY_AGAIN, PRELOAD})
"""Sequential phases before the commands of set-up and actions."""
AFTER_THE_END: Final = "something follows the end of the run"


class Causality:
    """Checks every event of a file, in order."""

    def __init__(self) -> None:
        self._cells: set[Cell] = set()
        self._started: set[int] = set()
        self._open: dict[int, InCourse] = {}
        self._ended = False
        self._warm_ups: set[int] = set()
        self.outcomes: Counter[str] = Counter()  # trials by outcome without warm-ups, as in ``RunFinished``

    def add(self, events: Sequence[Event]) -> None:
        """Check the next events. Raises ``ValueError`` for a contradiction."""
        if self._ended and events:
            raise ValueError(AFTER_THE_END)
        opened = self._open
        for event in events:
            if isinstance(event, PhaseEnded):
                if event.phase not in AFTERWARDS and (trial := opened.get(event.trial)) is not None:
                    trial.passed(event)
            elif isinstance(event, Actions):
                opened.get(event.trial, InCourse(0)).took(event)
            elif isinstance(event, TrialStarted):
                self._start(event)
            elif isinstance(event, TrialEnded):
                self._end(event)
            elif isinstance(event, Cell):
                self._cells.add(event)
                if len(self._cells) > MAX_CELLS:
                    raise ValueError(f"more than {MAX_CELLS} cells")
            elif isinstance(event, Header):
                check_scenario(event.scenario)
            elif isinstance(event, RunFinished):
                self._ended = True
                if event is not events[-1]:
                    raise ValueError(AFTER_THE_END)

    def _start(self, event: TrialStarted) -> None:
        if event.trial in self._started:
            raise ValueError(f"trial {event.trial} starts twice")
        self._started.add(event.trial)
        if event.warm_up:
            self._warm_ups.add(event.trial)
        self._open[event.trial] = InCourse(event.start_ns)

    def _end(self, event: TrialEnded) -> None:
        trial = self._open.pop(event.trial, None)
        if event.trial not in self._warm_ups:
            self.outcomes[event.outcome] += 1
        if trial is None:
            return  # its start was lost
        taken_ns = event.end_ns - trial.start_ns
        if trial.last_ns > event.end_ns:
            raise ValueError(f"trial {event.trial} ends before a phase of it does")
        if trial.spent_ns > taken_ns or event.queued_ns > taken_ns:
            raise ValueError(f"trial {event.trial} is shorter than what happened in it")


class InCourse:
    """A trial that has not ended: its start, and the time that its events account for."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.last_ns = start_ns  # end of the last phase
        self.spent_ns = 0  # total of sequential phases, commands, think time and gaps

    def took(self, event: Actions) -> None:
        """Add commands; those of a preload are part of the phase's time.

        Raises ``ValueError`` for columns of different lengths.
        """
        rows = len(event.duration_ns)
        columns = (event.gap_ns, event.think_ns, event.run_ns, event.exit_code, event.stdout_bytes, event.stderr_bytes)
        if any(column and len(column) != rows for column in (*columns, event.cpu_ns, event.wrapper_ns)):
            raise ValueError(f"trial {event.trial}: columns of different lengths")
        if event.step != PRELOAD:
            self.spent_ns += sum(event.duration_ns) + sum(event.gap_ns) + sum(event.think_ns)

    @property
    def earliest_end_ns(self) -> int:
        """Earliest possible end of the trial."""
        return max(self.last_ns, self.start_ns + self.spent_ns)

    def passed(self, event: PhaseEnded) -> None:
        """Add a phase. Raises ``ValueError`` if it begins before the trial."""
        if event.start_ns < self.start_ns:
            raise ValueError(f"trial {event.trial}: {event.phase!r} begins before it")
        end_ns = event.start_ns + event.duration_ns
        if end_ns > self.last_ns:
            self.last_ns = end_ns
        if event.phase in IN_TURN:
            self.spent_ns += event.duration_ns


def check_scenario(scenario: dict[str, Any]) -> None:
    """Raise ``ValueError`` where a header's scenario is beyond its bounds."""
    level: list[Any] = [scenario]
    count = depth = 0
    while level:
        count, depth = count + len(level), depth + 1
        if count > MAX_VALUES or depth > MAX_DEPTH:
            raise ValueError(f"the scenario has more than {MAX_VALUES} values or {MAX_DEPTH} levels")
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                if not all(isinstance(key, str) for key in value):
                    raise ValueError("a key of the scenario is no text")
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError("a number of the scenario is not finite")
            elif not (value is None or isinstance(value, str | int | float)):
                raise ValueError(f"the scenario holds a {type(value).__name__}")
        level = inner
