"""Durations of a trial from its phases and commands, as docs/measurement.md defines them.

Live, ``report``, ``project`` and exports share these definitions. Durations are int ns of one monotonic clock; sums are
exact. Columns are any sequences of ints.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Final, Self

import msgspec

UNKNOWN: Final = -1
"""Unknown in-sandbox time of a command."""

SCHEDULED: Final = frozenset({"staggered", "open"})
"""Arrivals that schedule each trial; in other arrivals a trial starts when another ends."""

OPEN: Final = "open"
"""Arrival with starts by the clock; ``concurrency`` is an upper bound of the trials in flight."""

STARTED: Final = frozenset({"started", "running"})
"""Milestones of the sandbox's process; time before them is orchestration."""


def known_parts(
    durations_ns: Sequence[int], runs_ns: Sequence[int], wrappers_ns: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """Return valid in-sandbox times (else UNKNOWN) and wrapper times (else 0) of columns as in a recording.

    An empty in-sandbox column means all 0. A time longer than its command is invalid, and so is a wrapper time without
    an in-sandbox time.
    """
    count = len(durations_ns)
    if not runs_ns:
        runs_ns = [0] * count
    elif any(map(operator.gt, runs_ns, durations_ns)):
        runs_ns = [run if run <= duration else UNKNOWN for run, duration in zip(runs_ns, durations_ns, strict=True)]
    if len(wrappers_ns) != count:
        return runs_ns, [0] * count
    columns = zip(durations_ns, runs_ns, wrappers_ns, strict=True)
    return runs_ns, [
        wrapper if 0 < wrapper <= duration - run and run != UNKNOWN else 0 for duration, run, wrapper in columns
    ]


def parted(
    durations_ns: Sequence[int], runs_ns: Sequence[int], wrappers_ns: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """Return command time and dispatch of each command with a known in-sandbox time.

    Dispatch excludes known wrapper time; ``known_parts`` returns the second and third column.
    """
    columns = zip(durations_ns, runs_ns, wrappers_ns, strict=True)
    parts = [(run, duration - run - wrapper) for duration, run, wrapper in columns if run != UNKNOWN]
    return [run for run, _ in parts], [dispatch for _, dispatch in parts]


class Split(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Total time of several commands by part, in ns."""

    # One per trial, as Measures: gc=False keeps it invisible to the garbage collector.

    work_ns: int = 0  # inside the sandbox
    dispatch_ns: int = 0  # the rest of the same commands
    unsplit_ns: int = 0  # whole commands with unknown in-sandbox time
    divided: bool = True  # whether all in-sandbox times are known
    wrapper_ns: int = 0  # taxtui's shell wrappers; 0: unknown, and part of dispatch

    @classmethod
    def of(cls, durations_ns: Sequence[int], runs_ns: Sequence[int], wrappers_ns: Sequence[int] = ()) -> Self:
        """Split columns of one length; ``known_parts`` returns the second and third."""
        divided = UNKNOWN not in runs_ns
        works_ns = runs_ns if divided else [run for run in runs_ns if run != UNKNOWN]
        work_ns, wrapper_ns, taken_ns = sum(works_ns), sum(wrappers_ns), sum(durations_ns)
        unsplit_ns = 0
        if not divided:
            unsplit_ns = sum(ns for ns, run in zip(durations_ns, runs_ns, strict=True) if run == UNKNOWN)
        return cls(work_ns, taken_ns - work_ns - wrapper_ns - unsplit_ns, unsplit_ns, divided, wrapper_ns)

    def plus(self, second: Split) -> Split:
        """Add more commands."""
        return Split(
            self.work_ns + second.work_ns,
            self.dispatch_ns + second.dispatch_ns,
            self.unsplit_ns + second.unsplit_ns,
            self.divided and second.divided,
            self.wrapper_ns + second.wrapper_ns,
        )

    @property
    def taken_ns(self) -> int:
        return self.work_ns + self.dispatch_ns + self.unsplit_ns + self.wrapper_ns


NO_COMMANDS: Final = Split()


class Measures(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Every duration of one trial in ns. In a failed trial only ``held_ns`` and the phases are valid."""

    create_ns: int = 0  # or reset
    ready_ns: int = 0
    preload_ns: int = 0
    setup_ns: int = 0  # phase; its commands are in work and dispatch, the rest in harness
    work_ns: int = 0
    dispatch_ns: int = 0
    unsplit_ns: int = 0
    harness_ns: int = 0
    queued_ns: int = 0
    think_ns: int = 0
    held_ns: int = 0
    ready_again_ns: int | None = None  # None: not measured
    cleanup_ns: int | None = None
    verify_ns: int | None = None  # tests of the task in the occupied sandbox; in no sum
    orchestration_ns: int | None = None  # None: no milestone
    divided: bool = True  # all in-sandbox times are known
    waiting_ns: int | None = None  # part of work without CPU use; None: CPU time is unknown
    start_delay_ns: int = 0  # from the scheduled start to the start, before the occupied time
    wrapper_ns: int = 0  # of taxtui's shell wrappers around the commands; 0 where unknown
    suspend_ns: int | None = None  # all suspensions, within model time; None: no suspension
    resume_ns: int | None = None  # all resumes, part of the runner gap
    snapshot_ns: int | None = None  # snapshot, fork and build after the last action, in no sum
    fork_ns: int | None = None
    build_ns: int | None = None

    @property
    def cold_start_ns(self) -> int:
        """Time to the first command's result."""
        return self.create_ns + self.ready_ns

    @property
    def startup_ns(self) -> int:
        """Time to the start of the set-up in a sandbox with the tier's needs."""
        return self.create_ns + self.ready_ns + self.preload_ns

    @property
    def fresh_episode_ns(self) -> int:
        """Time to the first action."""
        return self.startup_ns + self.setup_ns

    @property
    def trajectory_ns(self) -> int:
        """Time to the end of the last action, without think time and throttles."""
        return self.held_ns - self.queued_ns - self.think_ns

    @property
    def response_ns(self) -> int:
        """Time from the scheduled start to the end of the last action: start delay and occupied time.

        Valid for arrivals with a schedule; in a closed loop a trial starts when another ends.
        """
        return self.start_delay_ns + self.held_ns

    def contention_ns(self, contended: float | None) -> int:
        """Return the contended share of the waiting; 0: unknown."""
        return round((self.waiting_ns or 0) * (contended or 0.0))

    def tax_ns(self, *, ok: bool, contended: float | None = None) -> int:
        """Return occupied time beyond think, work and wrapper time; invalid unless ``known``; for a failure all."""
        if not ok:
            return self.held_ns
        useful_ns = self.work_ns + self.wrapper_ns - self.contention_ns(contended)
        return self.trajectory_ns + self.queued_ns - useful_ns


def has_schedule(arrival: str) -> bool:
    """Return whether an arrival schedules the start of each trial."""
    return arrival.partition(":")[0] in SCHEDULED


def measure(
    phases: Mapping[str, int],
    setup: Split,
    actions: Split,
    *,
    held_ns: int,
    queued_ns: int,
    think_ns: int,
    orchestration_ns: int | None = None,
    cpu_ns: int | None = None,
    start_delay_ns: int = 0,
) -> Measures:
    """Return the durations of a trial from its phases (ns by name), commands and occupied time."""
    create_ns = phases.get("create", 0) + phases.get("reset", 0)
    ready_ns, preload_ns = phases.get("ready", 0), phases.get("preload", 0)
    commands = setup.plus(actions)
    return Measures(  # by position: faster, for every trial of a file
        create_ns,
        ready_ns,
        preload_ns,
        phases.get("setup", 0),
        commands.work_ns,
        commands.dispatch_ns,
        commands.unsplit_ns,
        held_ns - queued_ns - think_ns - create_ns - ready_ns - preload_ns - commands.taken_ns,
        queued_ns,
        think_ns,
        held_ns,
        phases.get("ready_again"),
        phases.get("cleanup"),
        phases.get("verify"),
        orchestration_ns,
        commands.divided,
        None if cpu_ns is None or not commands.divided else max(0, commands.work_ns - cpu_ns),
        start_delay_ns,
        commands.wrapper_ns,
        phases.get("suspend"),
        phases.get("resume"),
        phases.get("snapshot"),
        phases.get("fork"),
        phases.get("build"),
    )
