"""The times of one trial in order: no duration is negative, and no time counts twice.

Overlaps are cut: parallel commands occupy the worker once, so the second command begins at the end of the first. A span
without both ends, or with the end before the start, is left out and reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final, NamedTuple, TypedDict

from costmodel import events
from taxtui.importers.protocol import ImportedAction, Phase, Quantity, Unknown
from taxtui.importers.values import LONGEST_NS, zoneless

NO_ZONE: Final = "times without a zone are taken as UTC: concurrency across machines may be wrong"
BACKWARDS: Final = "the clock runs backwards"
TOO_LONG: Final = "longer than a year"
AFTERWARDS: Final = (events.VERIFY, events.CLEANUP)
"""Phases after the trajectory; all others are before the trajectory."""


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
    action: bool  # False: model time
    run_ns: int = events.UNKNOWN
    exit_code: int = events.UNKNOWN


class Timeline:
    """Collects spans in any order; ``times`` returns the sorted result. Instants in ns; None: unknown."""

    def __init__(self, start_ns: int | None = None) -> None:
        """``start_ns``: the create request; None: the start of the first span."""
        self._start_ns = self._first_ns = start_ns
        self._phases: list[Phase] = []
        self._spans: list[_Span] = []
        self._unknown: dict[Unknown, None] = {}  # an ordered set
        self.cursor_ns = start_ns or 0  # the end of the latest span
        self._ended_ns: int | None = None

    @property
    def empty(self) -> bool:
        """Whether there is no span and no phase."""
        return not self._phases and not self._spans

    def lacks(self, quantity: str, why: str, *, partly: bool = False) -> None:
        """Report that the source lacks a quantity, or a part of the quantity."""
        self._unknown[Unknown(quantity, why, partly)] = None

    def lacks_zone(self, *values: object) -> None:
        """Report that instants are taken as UTC, if one of the values has no time zone."""
        if any(map(zoneless, values)):
            self.lacks(Quantity.INSTANTS, NO_ZONE, partly=True)

    def phase(self, name: str, start_ns: int | None, end_ns: int | None, why: str = "") -> bool:
        """Add a phase; return whether both ends are known. ``why`` is reported if an end is missing, unless empty."""
        ends = self._valid(Quantity.SETUP if name == events.PRELOAD else name, start_ns, end_ns, why)
        if ends is not None:
            self._phases.append(Phase(name, ends[0], ends[1] - ends[0]))
        return ends is not None

    def think(self, start_ns: int | None, end_ns: int | None, why: str = "") -> bool:
        """Add model time before the next action; return whether both ends are known."""
        ends = self._valid(Quantity.THINK, start_ns, end_ns, why)
        if ends is not None:
            self._spans.append(_Span(*ends, action=False))
        return ends is not None

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
        ends = self._valid(Quantity.ACTIONS, start_ns, end_ns, why)
        if ends is not None:
            self._spans.append(_Span(*ends, True, run_ns, exit_code))
        return ends is not None

    def calls(self, spans: Iterable[tuple[int, int]], cursor_ns: int | None = None) -> None:
        """Add commands, and the time between two as model time; with ``cursor_ns`` from that instant on."""
        for start_ns, end_ns in sorted(spans):
            if cursor_ns is not None and start_ns > cursor_ns:
                self.think(cursor_ns, start_ns)
            self.action(start_ns, end_ns)
            cursor_ns = max(end_ns, cursor_ns or 0)

    def next_phase(self, name: str, duration_ns: int) -> None:
        """Add a phase with a known duration directly after the latest span."""
        self.phase(name, self.cursor_ns, self.cursor_ns + duration_ns)

    def next_action(self, duration_ns: int) -> None:
        """Add a command with a known duration directly after the latest span."""
        self.action(self.cursor_ns, self.cursor_ns + duration_ns)

    def ended(self, at_ns: int | None) -> None:
        """Set the end of a failed trial's occupied time."""
        self._ended_ns = at_ns

    def times(self) -> Times:
        """Return all spans in order, without time before the start."""
        starts = [phase.start_ns for phase in self._phases] + [span.start_ns for span in self._spans]
        start_ns = self._start_ns if self._start_ns is not None else min(starts, default=0)
        before, cursor_ns = self._phases_from(start_ns, afterwards=False)
        actions, end_ns = self._actions_from(cursor_ns)
        if self._ended_ns is not None and end_ns < self._ended_ns <= start_ns + LONGEST_NS:
            end_ns = self._ended_ns
        after, _ = self._phases_from(end_ns, afterwards=True)
        return Times(
            start_ns=start_ns,
            end_ns=end_ns,
            phases=(*before, *after),
            actions=tuple(actions),
            unknown=tuple(self._unknown),
        )

    def _phases_from(self, cursor_ns: int, *, afterwards: bool) -> tuple[list[Phase], int]:
        """Return the phases before or after the trajectory without their time before an instant, and their end."""
        phases = []
        for phase in sorted(self._phases, key=attrgetter("start_ns")):
            if (phase.name in AFTERWARDS) == afterwards:
                start_ns = max(phase.start_ns, cursor_ns)
                cursor_ns = max(start_ns, phase.start_ns + phase.duration_ns)
                phases.append(Phase(phase.name, start_ns, cursor_ns - start_ns))
        return phases, cursor_ns

    def _actions_from(self, cursor_ns: int) -> tuple[list[ImportedAction], int]:
        """Return the actions after an instant and the last action's end, without model time after the last action."""
        actions: list[ImportedAction] = []
        end_ns = cursor_ns
        gap_ns = think_ns = 0
        for span in sorted(self._spans):
            start_ns = max(span.start_ns, cursor_ns)
            gap_ns += start_ns - cursor_ns
            cursor_ns = max(span.end_ns, start_ns)
            duration_ns = cursor_ns - start_ns
            if not span.action:
                think_ns += duration_ns
                continue
            run_ns = span.run_ns if span.run_ns <= duration_ns else events.UNKNOWN
            actions.append(ImportedAction(duration_ns, think_ns, gap_ns, run_ns, span.exit_code))
            gap_ns = think_ns = 0
            end_ns = cursor_ns
        return actions, end_ns

    def _valid(self, quantity: str, start_ns: int | None, end_ns: int | None, why: str) -> tuple[int, int] | None:
        """Return both ends if they are known, in order, and within a year of the trial's start."""
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
