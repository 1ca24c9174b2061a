"""The times of one trial in order: no duration is negative, and no time counts twice.

Overlaps are cut and reported. Parallel commands occupy the worker once: the second begins at the end of the first. A
phase is cut at the first command, and model time at a phase or command. A span without both ends, or with the end
before the start, is left out and reported.
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
OVERLAP: Final = "the common time of overlapping spans counts once"
UNFIT: Final = "in-sandbox time longer than the command, or of a command that overlaps another"
LATE: Final = "the time during another phase, or after the start of the first command, counts there or as a gap"
EARLY: Final = "the time during another phase, or before the end of the last command, counts there or as a gap"
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
        first_ns = min((span.start_ns for span in self._spans if span.kind == events.ACTION), default=self.latest_ns)
        before = self._phases(start_ns, first_ns, LATE, afterwards=False)
        actions, end_ns = self._actions(start_ns, before)
        if self._ended_ns is not None and end_ns < self._ended_ns <= start_ns + LONGEST_NS:
            end_ns = self._ended_ns
        after = self._phases(end_ns, self.latest_ns, EARLY, afterwards=True)
        return Times(
            start_ns=start_ns,
            end_ns=end_ns,
            phases=tuple(Phase(span.kind, span.start_ns, span.end_ns - span.start_ns) for span in (*before, *after)),
            actions=tuple(actions),
            unknown=tuple(self._unknown),
        )

    def _phases(self, from_ns: int, until_ns: int, why: str, *, afterwards: bool) -> list[_Span]:
        """Return the phases before or after the trajectory, cut to the time between two instants.

        ``why`` is reported for each cut.
        """
        phases: list[_Span] = []
        for span in sorted(self._spans):
            if span.kind not in _TRAJECTORY and (span.kind in AFTERWARDS) == afterwards:
                cut = span._replace(start_ns=max(span.start_ns, from_ns), end_ns=min(span.end_ns, until_ns))
                if cut != span:
                    self.lacks(_QUANTITIES.get(span.kind, span.kind), why, partly=True)
                if cut.start_ns <= cut.end_ns:
                    phases.append(cut)
                    from_ns = cut.end_ns
        return phases

    def _actions(self, start_ns: int, phases: list[_Span]) -> tuple[list[ImportedAction], int]:
        """Return the actions and the end of the last, without model time after the last action."""
        actions: list[ImportedAction] = []
        cursor_ns = end_ns = start_ns
        gap_ns = think_ns = 0
        trajectory = [span for span in self._spans if span.kind in _TRAJECTORY]
        for span in sorted([*phases, *trajectory]):
            # A phase or command begins at the end of the last, and takes the time of model calls.
            begin_ns = max(span.start_ns, cursor_ns if span.kind == Quantity.THINK else end_ns)
            until_ns = max(span.end_ns, begin_ns)
            if span.start_ns < min(begin_ns, span.end_ns):
                self.lacks(_QUANTITIES.get(span.kind, span.kind), OVERLAP, partly=True)
            gap_ns += max(0, begin_ns - cursor_ns)
            if span.kind == Quantity.THINK:
                think_ns += until_ns - begin_ns
                cursor_ns = until_ns
                continue
            counted_ns = max(0, cursor_ns - begin_ns)  # model time after the begin
            rest_ns = max(0, cursor_ns - until_ns)  # model time after the end
            if rest_ns < counted_ns:
                self.lacks(Quantity.THINK, OVERLAP, partly=True)
            think_ns -= counted_ns
            if span.kind == events.ACTION:
                duration_ns = until_ns - begin_ns
                whole = begin_ns == span.start_ns  # the cut part may be of the in-sandbox time or of the rest
                run_ns = span.run_ns if whole and span.run_ns <= duration_ns else events.UNKNOWN
                if run_ns != span.run_ns:
                    self.lacks(Quantity.RUN, UNFIT, partly=True)
                actions.append(ImportedAction(duration_ns, think_ns, gap_ns, run_ns, span.exit_code))
                think_ns = 0
            think_ns += rest_ns
            gap_ns = 0
            end_ns = until_ns
            cursor_ns = max(cursor_ns, until_ns)
        return actions, end_ns
