"""One trial's time in order: no duration is negative, no time counts twice.

Overlaps are cut: parallel commands occupy the worker once, so the second begins where the first ended. A span without
both ends, or with its end before its start, is left out and reported.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final, NamedTuple, TypedDict

from costmodel import events
from taxtui.importers.protocol import ACTIONS, INSTANTS, THINK, ImportedAction, Phase, Unknown
from taxtui.importers.values import LONGEST_NS, zoneless

NO_ZONE: Final = "times without a zone are taken as UTC: concurrency across machines may be wrong"
BACKWARDS: Final = "its clock runs backwards"
TOO_LONG: Final = "it is longer than a year"
AFTERWARDS: Final = (events.VERIFY, events.CLEANUP)
"""Phases behind the trajectory; all others are before it."""


class Times(TypedDict):
    """The fields of time of an :class:`~taxtui.importers.protocol.ImportedTrial`."""

    start_ns: int
    end_ns: int
    phases: tuple[Phase, ...]
    actions: tuple[ImportedAction, ...]
    unknown: tuple[Unknown, ...]


class _Span(NamedTuple):
    start_ns: int
    end_ns: int
    action: bool
    run_ns: int = events.UNKNOWN
    exit_code: int = events.UNKNOWN


class Timeline:
    """Collects spans in any order; ``times`` returns the sorted result. Instants in ns; None: unknown."""

    def __init__(self, start_ns: int | None = None) -> None:
        """``start_ns``: when the sandbox was asked for; None: the first thing known."""
        self._start_ns = self._first_ns = start_ns
        self._phases: list[Phase] = []
        self._spans: list[_Span] = []
        self._unknown: dict[Unknown, None] = {}  # a set that keeps its order
        self.cursor_ns = start_ns or 0  # the end of the latest span
        self._ended_ns: int | None = None

    @property
    def empty(self) -> bool:
        """Whether there is no span and no phase."""
        return not self._phases and not self._spans

    def lacks(self, quantity: str, why: str, *, partly: bool = False) -> None:
        """Report that the source lacks a quantity, or a part of it."""
        self._unknown[Unknown(quantity, why, partly)] = None

    def lacks_zone(self, *values: object) -> None:
        """Report that instants are taken as UTC, if one of the values has no time zone."""
        if any(map(zoneless, values)):
            self.lacks(INSTANTS, NO_ZONE, partly=True)

    def phase(self, name: str, start_ns: int | None, end_ns: int | None, why: str = "") -> bool:
        """Add a phase; return whether both ends are known. ``why`` is reported if an end is missing, unless empty."""
        ends = self._believed(name, start_ns, end_ns, why)
        if ends is not None:
            self._phases.append(Phase(name, ends[0], ends[1] - ends[0]))
        return ends is not None

    def think(self, start_ns: int | None, end_ns: int | None, why: str = "") -> bool:
        """Add model time before the next action; return whether both ends are known."""
        return self._span(THINK, start_ns, end_ns, why, action=False)

    def action(
        self,
        start_ns: int | None,
        end_ns: int | None,
        why: str = "",
        *,
        run_ns: int = events.UNKNOWN,
        exit_code: int = events.UNKNOWN,
    ) -> bool:
        """Add a command; return whether both ends are known."""
        return self._span(ACTIONS, start_ns, end_ns, why, action=True, run_ns=run_ns, exit_code=exit_code)

    def next_phase(self, name: str, duration_ns: int) -> None:
        """Add a phase with a known duration directly after the latest span."""
        self.phase(name, self.cursor_ns, self.cursor_ns + duration_ns)

    def next_action(
        self, duration_ns: int, think_ns: int = 0, *, run_ns: int = events.UNKNOWN, exit_code: int = events.UNKNOWN
    ) -> None:
        """Add a command with known durations directly after the latest span."""
        if think_ns:
            self.think(self.cursor_ns, self.cursor_ns + think_ns)
        self.action(self.cursor_ns, self.cursor_ns + duration_ns, run_ns=run_ns, exit_code=exit_code)

    def ended(self, at_ns: int | None) -> None:
        """Set the end of a failed trial's occupied time."""
        self._ended_ns = at_ns

    def times(self) -> Times:
        """All spans in order; time before the start is cut off."""
        starts = [phase.start_ns for phase in self._phases] + [span.start_ns for span in self._spans]
        start_ns = self._start_ns if self._start_ns is not None else min(starts, default=0)
        phases: list[Phase] = []
        cursor_ns = start_ns
        for phase in sorted(self._phases, key=attrgetter("start_ns")):
            if phase.name not in AFTERWARDS:
                phases.append(_cut(phase, cursor_ns))
                cursor_ns = max(cursor_ns, phases[-1].start_ns + phases[-1].duration_ns)
        actions, end_ns = self._actions(cursor_ns)
        if self._ended_ns is not None and end_ns < self._ended_ns <= start_ns + LONGEST_NS:
            end_ns = self._ended_ns
        cursor_ns = end_ns
        for phase in sorted(self._phases, key=attrgetter("start_ns")):
            if phase.name in AFTERWARDS:
                phases.append(_cut(phase, cursor_ns))
                cursor_ns = max(cursor_ns, phases[-1].start_ns + phases[-1].duration_ns)
        return Times(
            start_ns=start_ns,
            end_ns=end_ns,
            phases=tuple(phases),
            actions=tuple(actions),
            unknown=tuple(self._unknown),
        )

    def _actions(self, cursor_ns: int) -> tuple[list[ImportedAction], int]:
        """The actions behind an instant, and where the last one ends; think time that leads to none is left out."""
        actions: list[ImportedAction] = []
        end_ns = cursor_ns
        gap_ns = think_ns = 0
        for span in sorted(self._spans):
            begun_ns = max(span.start_ns, cursor_ns)
            gap_ns += begun_ns - cursor_ns
            cursor_ns = max(span.end_ns, begun_ns)
            if not span.action:
                think_ns += cursor_ns - begun_ns
                continue
            duration_ns = cursor_ns - begun_ns
            run_ns = span.run_ns if span.run_ns <= duration_ns else events.UNKNOWN
            actions.append(ImportedAction(duration_ns, think_ns, gap_ns, run_ns, span.exit_code))
            gap_ns = think_ns = 0
            end_ns = cursor_ns
        return actions, end_ns

    def _span(
        self,
        quantity: str,
        start_ns: int | None,
        end_ns: int | None,
        why: str,
        *,
        action: bool,
        run_ns: int = events.UNKNOWN,
        exit_code: int = events.UNKNOWN,
    ) -> bool:
        ends = self._believed(quantity, start_ns, end_ns, why)
        if ends is not None:
            self._spans.append(_Span(*ends, action, run_ns, exit_code))
        return ends is not None

    def _believed(self, quantity: str, start_ns: int | None, end_ns: int | None, why: str) -> tuple[int, int] | None:
        """Both ends if they are known, in order, and within a year of the trial's start."""
        if start_ns is None or end_ns is None:
            if why:
                self.lacks(quantity, why, partly=True)
            return None
        first_ns = self._first_ns = start_ns if self._first_ns is None else self._first_ns
        if end_ns < start_ns or (self._start_ns is not None and start_ns < self._start_ns):
            self.lacks(quantity, BACKWARDS, partly=True)
            return None
        if end_ns - first_ns > LONGEST_NS or first_ns - start_ns > LONGEST_NS:
            self.lacks(quantity, TOO_LONG, partly=True)
            return None
        self.cursor_ns = max(self.cursor_ns, end_ns)
        return start_ns, end_ns


def _cut(phase: Phase, cursor_ns: int) -> Phase:
    start_ns = max(phase.start_ns, cursor_ns)
    return Phase(phase.name, start_ns, max(0, phase.start_ns + phase.duration_ns - start_ns))
