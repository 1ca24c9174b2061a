"""Durations of a trial from its phases and commands: the one definition of every term of docs/measurement.md.

Live, ``report``, ``project`` and every export call this, so that a word means one number. All durations are
int ns of one process's monotonic clock; sums are exact. The columns are any sequences of ints.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

import msgspec

UNKNOWN: Final = -1
"""The run of a command that could not be measured."""

SCHEDULED: Final = frozenset({"staggered", "open"})
"""Arrivals, by name, of which each trial has an instant to start at; elsewhere it starts when another has ended."""

OPEN: Final = "open"
"""The arrival of which trials start by the clock; so many are in flight as come about, and ``concurrency`` at most."""

STARTED: Final = frozenset({"started", "running"})
"""Marks that show that the sandbox's own process runs: what came before is orchestration."""


def known_runs(durations_ns: Sequence[int], runs_ns: Sequence[int]) -> Sequence[int]:
    """A column of runs as it counts: empty means all 0, and UNKNOWN is also what is longer than its command took."""
    if not runs_ns:
        return [0] * len(durations_ns)
    if len(runs_ns) != len(durations_ns):
        return [UNKNOWN] * len(durations_ns)  # which command each belongs to is lost
    if not any(map(operator.gt, runs_ns, durations_ns)):
        return runs_ns
    return [run if run <= duration else UNKNOWN for run, duration in zip(runs_ns, durations_ns, strict=True)]


def known_wrappers(durations_ns: Sequence[int], runs_ns: Sequence[int], wrappers_ns: Sequence[int]) -> Sequence[int]:
    """A column of wrapper times as it counts: empty where none is known, else 0 where one is not.

    A wrapper time is unknown where its run is, and where both are longer than the command. ``runs_ns`` is as
    ``known_runs`` returns it.
    """
    if len(wrappers_ns) != len(durations_ns):
        return ()
    columns = zip(durations_ns, runs_ns, wrappers_ns, strict=True)
    wrappers = [
        wrapper if 0 < wrapper <= duration - run and run != UNKNOWN else 0 for duration, run, wrapper in columns
    ]
    return wrappers if any(wrappers) else ()


def parted(
    durations_ns: Sequence[int], runs_ns: Sequence[int], wrappers_ns: Sequence[int] = ()
) -> tuple[Sequence[int], Sequence[int]]:
    """Work and dispatch of each command whose run is known: the time inside the sandbox, and the rest.

    Dispatch is without wrapper time where that is known; ``wrappers_ns`` is as ``known_wrappers`` returns it.
    """
    if len(wrappers_ns):
        durations_ns = list(map(operator.sub, durations_ns, wrappers_ns))
    if UNKNOWN in runs_ns:
        pairs = [(duration, run) for duration, run in zip(durations_ns, runs_ns, strict=True) if run != UNKNOWN]
        durations_ns, runs_ns = [duration for duration, _ in pairs], [run for _, run in pairs]
    return runs_ns, list(map(operator.sub, durations_ns, runs_ns))


def cpu_of(durations_ns: Sequence[int], cpus_ns: Sequence[int]) -> int | None:
    """The CPU time of a column's commands together; None where that of one is unknown."""
    if len(cpus_ns) != len(durations_ns) or UNKNOWN in cpus_ns:
        return None
    return sum(cpus_ns)


def both(first: int | None, second: int | None) -> int | None:
    """A sum of which no part is unknown; else None."""
    return None if first is None or second is None else first + second


class Split(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Commands taken together, in ns."""

    # Like Measures, there is one per trial of a file: a struct that the garbage collector need not look at.

    work_ns: int = 0  # inside the sandbox
    dispatch_ns: int = 0  # the rest of the same commands
    unsplit_ns: int = 0  # whole commands whose run is unknown
    known: bool = True  # that there are none of those
    wrapper_ns: int = 0  # of taxtui's shell wrappers around the commands; 0 where unknown, and part of dispatch then

    @classmethod
    def of(cls, durations_ns: Sequence[int], runs_ns: Sequence[int], wrappers_ns: Sequence[int] = ()) -> Self:
        """Split columns of one length; ``known_runs`` and ``known_wrappers`` return the second and third."""
        if UNKNOWN not in runs_ns:
            work_ns, wrapper_ns = sum(runs_ns), sum(wrappers_ns)
            return cls(work_ns, sum(durations_ns) - work_ns - wrapper_ns, 0, True, wrapper_ns)
        return cls.of_parted(durations_ns, *parted(durations_ns, runs_ns, wrappers_ns), wrappers_ns)

    @classmethod
    def of_parted(
        cls,
        durations_ns: Sequence[int],
        works_ns: Sequence[int],
        dispatches_ns: Sequence[int],
        wrappers_ns: Sequence[int] = (),
    ) -> Self:
        """Split columns by the result of ``parted``."""
        work_ns, dispatch_ns, wrapper_ns = sum(works_ns), sum(dispatches_ns), sum(wrappers_ns)
        unsplit_ns = sum(durations_ns) - work_ns - dispatch_ns - wrapper_ns
        return cls(work_ns, dispatch_ns, unsplit_ns, len(works_ns) == len(durations_ns), wrapper_ns)

    def plus(self, second: Split) -> Split:
        """With more commands."""
        if self is NO_COMMANDS:
            return second
        return Split(
            self.work_ns + second.work_ns,
            self.dispatch_ns + second.dispatch_ns,
            self.unsplit_ns + second.unsplit_ns,
            self.known and second.known,
            self.wrapper_ns + second.wrapper_ns,
        )

    @property
    def taken_ns(self) -> int:
        """Total time of the commands."""
        return self.work_ns + self.dispatch_ns + self.unsplit_ns + self.wrapper_ns


NO_COMMANDS: Final = Split()


class Causes(NamedTuple):
    """The occupied time of a trial by cause, in ns; the exact sum is ``held``."""

    startup_ns: int = 0  # create, ready, preload
    dispatch_ns: int = 0  # getting commands in and results out, those of the set-up too
    contention_ns: int = 0  # of the commands' own time what they waited because others ran; 0 where unknown
    work_ns: int = 0  # the rest of the commands' own time inside the sandbox, those of the set-up too
    unsplit_ns: int = 0  # commands of which only the sum of the two before is known
    harness_ns: int = 0  # our own time between phases and commands
    queued_ns: int = 0  # waiting that throttles imposed
    think_ns: int = 0  # idle on purpose
    failed_ns: int = 0  # all that a trial held that did not succeed
    wrapper_ns: int = 0  # of taxtui's shell wrappers around the commands: no tax; 0 where unknown


class Measures(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Every duration of one trial in ns. In a failed trial only ``held_ns`` and the phases are valid."""

    create_ns: int = 0  # or reset, which replaces it
    ready_ns: int = 0
    preload_ns: int = 0
    setup_ns: int = 0  # the phase; its commands are in work and dispatch, the rest of it is harness
    work_ns: int = 0
    dispatch_ns: int = 0
    unsplit_ns: int = 0
    harness_ns: int = 0
    queued_ns: int = 0
    think_ns: int = 0
    held_ns: int = 0
    ready_again_ns: int | None = None  # None: it was not taken
    cleanup_ns: int | None = None
    verify_ns: int | None = None  # the sandbox held on while its task was tested; in no sum
    orchestration_ns: int | None = None  # None: no mark shows it
    known: bool = True  # the run of every command
    waiting_ns: int | None = None  # of work: inside the sandbox and on no CPU, whatever for; None: CPU time is unknown
    start_delay_ns: int = 0  # from its turn, as the arrival planned it, to its start: before anything that is held
    wrapper_ns: int = 0  # of taxtui's shell wrappers around the commands; 0 where unknown
    suspend_ns: int | None = None  # all suspensions of the sandbox, within model time; None: there was none
    resume_ns: int | None = None  # all resumes, part of the runner gap
    snapshot_ns: int | None = None  # snapshot, fork and build after the last action, in no sum
    fork_ns: int | None = None
    build_ns: int | None = None

    @property
    def cold_start_ns(self) -> int:
        """Until the first command returned."""
        return self.create_ns + self.ready_ns

    @property
    def startup_ns(self) -> int:
        """Until the set-up could begin, in a sandbox that holds what the tier needs."""
        return self.create_ns + self.ready_ns + self.preload_ns

    @property
    def fresh_episode_ns(self) -> int:
        """Until the first action could begin."""
        return self.startup_ns + self.setup_ns

    @property
    def trajectory_ns(self) -> int:
        """Until the last action's end, without think time and throttles."""
        return self.held_ns - self.queued_ns - self.think_ns

    @property
    def response_ns(self) -> int:
        """From its turn to the last action's end: held, the service time, and what it was late before that.

        Told where the arrival has a schedule; in a closed loop a trial's turn comes when another has ended.
        """
        return self.start_delay_ns + self.held_ns

    def contention_ns(self, contended: float | None) -> int:
        """The contended share of the waiting; 0 where the share or the waiting is unknown."""
        return round((self.waiting_ns or 0) * (contended or 0.0))

    def causes(self, *, ok: bool, contended: float | None = None) -> Causes:
        """Divide ``held`` by cause; ``contended``: the contended share of the cell's waiting, None: unknown."""
        if not ok:
            return Causes(failed_ns=self.held_ns)
        contention_ns = self.contention_ns(contended)
        return Causes(
            self.startup_ns,
            self.dispatch_ns,
            contention_ns,
            self.work_ns - contention_ns,
            self.unsplit_ns,
            self.harness_ns,
            self.queued_ns,
            self.think_ns,
            wrapper_ns=self.wrapper_ns,
        )

    def tax_ns(self, *, ok: bool, contended: float | None = None) -> int:
        """Held time beyond think, work and wrapper time; meaningless unless ``known``. All of a failed trial."""
        if not ok:
            return self.held_ns
        useful_ns = self.work_ns + self.wrapper_ns - self.contention_ns(contended)
        return self.trajectory_ns + self.queued_ns - useful_ns


NOTHING: Final = Measures()


def has_schedule(arrival: str) -> bool:
    """Whether trials of this arrival, as a cell has it, have an instant of their own to start at."""
    return arrival.partition(":")[0] in SCHEDULED


def start_delay_ns(scheduled_ns: int, start_ns: int) -> int:
    """How late a trial started; instants of one clock."""
    return max(0, start_ns - scheduled_ns)


def held_ns(start_ns: int, end_ns: int, phases: Mapping[str, int]) -> int:
    """Return the occupied time: from the first create request to the end of the last action, or the failure."""
    return end_ns - start_ns - phases.get("ready_again", 0)


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
    """A trial's durations from its phases (ns by name), its commands and what they were held for."""
    create_ns = phases.get("create", 0) + phases.get("reset", 0)
    ready_ns, preload_ns = phases.get("ready", 0), phases.get("preload", 0)
    commands = setup.plus(actions)
    return Measures(  # by position, in order: it is made for every trial of a file
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
        commands.known,
        None if cpu_ns is None or not commands.known else max(0, commands.work_ns - cpu_ns),
        start_delay_ns,
        commands.wrapper_ns,
        phases.get("suspend"),
        phases.get("resume"),
        phases.get("snapshot"),
        phases.get("fork"),
        phases.get("build"),
    )


def contended(waiting_ns: float, alone_ns: float) -> float:
    """The share of a cell's waiting that is contention: what exceeds the waiting of the same commands alone.

    ``waiting_ns`` and ``alone_ns`` are means over successful trials, of a cell and of the same one at concurrency 1. A
    command that sleeps, or waits for a disk or a peer, does so alone too: that is no contention.
    """
    return max(0.0, 1 - alone_ns / waiting_ns) if waiting_ns else 0.0
