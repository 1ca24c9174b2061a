"""The times of one trial in order: no duration is negative, and no time counts twice.

Overlaps are cut: parallel commands occupy the worker once, so the second command begins at the end of the first. A span
without both ends, or with the end before the start, is left out and reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypedDict

from costmodel import events
from taxtui.importers.trial import ImportedAction, Phase, Quantity, Unknown
from taxtui.importers.values import LONGEST_NS, zoneless

NO_ZONE: Final = "times without a zone are taken as UTC: concurrency across machines may be wrong"
BACKWARDS: Final = "the clock runs backwards"
TOO_LONG: Final = "longer than a year"
UNDIVIDED: Final = "only the agent's total time is known"
AFTERWARDS: Final = (events.VERIFY, events.CLEANUP)
"""Phases after the trajectory; all others are before the trajectory."""
_TRAJECTORY: Final = (Quantity.THINK, events.ACTION)
_QUANTITIES: Final = {events.PRELOAD: Quantity.SETUP, events.ACTION: Quantity.ACTIONS}
"""Kind of a span → quantity, where the names differ."""


class Times(TypedDict):
    """The fields of time of an :class:`~taxtui.importers.trial.ImportedTrial`."""

    start_ns: int
    end_ns: int
    phases: tuple[Phase, ...]
    actions: tuple[ImportedAction, ...]
    unknown: tuple[Unknown, ...]


class _Span(NamedTuple):
    start_ns: int
    end_ns: int
    kind: str
    run_ns: int
    exit_code: int


class Timeline:
    """Collects spans in any order; ``times`` returns the sorted result. Instants in ns; None: unknown."""

    def __init__(self, start_ns: int | None = None) -> None:
        """``start_ns``: the create request; None: the start of the first span."""
        self._start_ns = self._first_ns = start_ns
        self._spans: list[_Span] = []
        self._unknown: dict[Unknown, None] = {}  # an ordered set
        self.latest_ns = start_ns or 0  # the end of the latest span
        self._ended_ns: int | None = None

    @property
    def empty(self) -> bool:
        """Whether there is no span."""
        return not self._spans

    def lacks(self, quantity: str, why: str, *, partly: bool = False) -> None:
        """Report that the source lacks a quantity, or a part of the quantity."""
        self._unknown[Unknown(quantity, why, partly)] = None

    def lacks_zone(self, *values: object) -> None:
        """Report that instants are taken as UTC, if one of the values has no time zone."""
        if any(map(zoneless, values)):
            self.lacks(Quantity.INSTANTS, NO_ZONE, partly=True)

    def add(
        self,
        kind: str,
        start_ns: int | None,
        end_ns: int | None,
        why: str = "",
        *,
        run_ns: int | None = None,
        exit_code: int | None = None,
    ) -> bool:
        """Add a phase, a command (``events.ACTION``), or model time before the next command (``Quantity.THINK``).

        Returns whether both ends are known, in order, and within a year of the trial's start. ``why`` is reported if an
        end is missing, unless empty.
        """
        quantity = _QUANTITIES.get(kind, kind)
        if start_ns is None or end_ns is None:
            if why:
                self.lacks(quantity, why, partly=True)
            return False
        if self._first_ns is None:
            self._first_ns = start_ns
        if end_ns < start_ns or (self._start_ns is not None and start_ns < self._start_ns):
            self.lacks(quantity, BACKWARDS, partly=True)
            return False
        if end_ns - self._first_ns > LONGEST_NS or self._first_ns - start_ns > LONGEST_NS:
            self.lacks(quantity, TOO_LONG, partly=True)
            return False
        self.latest_ns = max(self.latest_ns, end_ns)
        run_ns, exit_code = (events.UNKNOWN if value is None else value for value in (run_ns, exit_code))
        self._spans.append(_Span(start_ns, end_ns, kind, run_ns, exit_code))
        return True

    def append(self, kind: str, duration_ns: int) -> None:
        """Add a span with a known duration directly after the latest span."""
        self.add(kind, self.latest_ns, self.latest_ns + duration_ns)

    def calls(self, spans: Iterable[tuple[int, int]], cursor_ns: int | None = None) -> None:
        """Add commands, and the time between two as model time; with ``cursor_ns`` from that instant on."""
        for start_ns, end_ns in sorted(spans):
            if cursor_ns is not None and start_ns > cursor_ns:
                self.add(Quantity.THINK, cursor_ns, start_ns)
            self.add(events.ACTION, start_ns, end_ns)
            cursor_ns = max(end_ns, cursor_ns or 0)

    def add_undivided(self, start_ns: int, end_ns: int, *, think_ns: int | None = None, model: bool = True) -> bool:
        """Add an agent's total time as a single command; return whether the ends are in order.

        ``think_ns``: known model time, added before the command; without a ``model`` there is none.
        """
        timed = think_ns if think_ns and think_ns <= end_ns - start_ns else 0
        self.lacks(Quantity.ACTIONS, UNDIVIDED)
        if timed:
            self.lacks(Quantity.GAPS, "the harness's time is part of the command")
        elif model:
            self.lacks(Quantity.THINK, UNDIVIDED)
        self.add(Quantity.THINK, start_ns, start_ns + timed)
        return self.add(events.ACTION, start_ns + timed, end_ns)

    def ended(self, at_ns: int | None) -> None:
        """Set the end of a failed trial's occupied time."""
        self._ended_ns = at_ns

    def times(self) -> Times:
        """Return all spans in order, without time before the start."""
        starts = (span.start_ns for span in self._spans)
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
        for span in sorted(self._spans, key=lambda span: span.start_ns):
            if span.kind not in _TRAJECTORY and (span.kind in AFTERWARDS) == afterwards:
                start_ns = max(span.start_ns, cursor_ns)
                cursor_ns = max(start_ns, span.end_ns)
                phases.append(Phase(span.kind, start_ns, cursor_ns - start_ns))
        return phases, cursor_ns

    def _actions_from(self, cursor_ns: int) -> tuple[list[ImportedAction], int]:
        """Return the actions after an instant and the last action's end, without model time after the last action."""
        actions: list[ImportedAction] = []
        end_ns = cursor_ns
        gap_ns = think_ns = 0
        # Of two equal spans the model's is first.
        for span in sorted(self._spans, key=lambda span: (*span[:2], span.kind == events.ACTION)):
            if span.kind not in _TRAJECTORY:
                continue
            start_ns = max(span.start_ns, cursor_ns)
            gap_ns += start_ns - cursor_ns
            cursor_ns = max(span.end_ns, start_ns)
            duration_ns = cursor_ns - start_ns
            if span.kind == Quantity.THINK:
                think_ns += duration_ns
                continue
            run_ns = span.run_ns if span.run_ns <= duration_ns else events.UNKNOWN
            actions.append(ImportedAction(duration_ns, think_ns, gap_ns, run_ns, span.exit_code))
            gap_ns = think_ns = 0
            end_ns = cursor_ns
        return actions, end_ns
