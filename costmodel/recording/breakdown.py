"""What a trial's phases and commands amount to: the one definition of every term, as docs/measurement.md has them.

Live, ``report``, ``project`` and every export call this, so that a word stands for one number. All durations are
int ns of one process's monotonic clock; sums are exact. The columns are any sequences of ints: nothing is made per
command that the sums do not need.
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
    return [run if run <= own else UNKNOWN for run, own in zip(runs_ns, durations_ns, strict=True)]


def parted(durations_ns: Sequence[int], runs_ns: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Work and dispatch of each command whose run is known: what it ran inside the sandbox, and the rest."""
    if UNKNOWN in runs_ns:
        known = [(own, run) for own, run in zip(durations_ns, runs_ns, strict=True) if run != UNKNOWN]
        durations_ns, runs_ns = [own for own, _ in known], [run for _, run in known]
    return runs_ns, list(map(operator.sub, durations_ns, runs_ns))


def cpu_of(durations_ns: Sequence[int], cpus_ns: Sequence[int]) -> int | None:
    """The CPU time of a column's commands together; None where that of one is unknown."""
    if len(cpus_ns) != len(durations_ns) or UNKNOWN in cpus_ns:
        return None
    return sum(cpus_ns)


def both(one: int | None, other: int | None) -> int | None:
    """A sum of which no part is unknown; else None."""
    return None if one is None or other is None else one + other


class Split(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Commands taken together, in ns."""

    # Like Measures, there is one per trial of a file: a struct that the garbage collector need not look at.

    work_ns: int = 0  # inside the sandbox
    dispatch_ns: int = 0  # the rest of the same commands
    unsplit_ns: int = 0  # whole commands whose run is unknown
    known: bool = True  # that there are none of those

    @classmethod
    def of(cls, durations_ns: Sequence[int], runs_ns: Sequence[int]) -> Self:
        """Of columns of one length, as ``known_runs`` returns the second."""
        if UNKNOWN not in runs_ns:
            work_ns = sum(runs_ns)
            return cls(work_ns, sum(durations_ns) - work_ns)
        return cls.of_parted(durations_ns, *parted(durations_ns, runs_ns))

    @classmethod
    def of_parted(cls, durations_ns: Sequence[int], works_ns: Sequence[int], dispatches_ns: Sequence[int]) -> Self:
        """Of columns and what ``parted`` made of them."""
        work_ns, dispatch_ns = sum(works_ns), sum(dispatches_ns)
        unsplit_ns = sum(durations_ns) - work_ns - dispatch_ns
        return cls(work_ns, dispatch_ns, unsplit_ns, len(works_ns) == len(durations_ns))

    def plus(self, other: Split) -> Split:
        """With more commands."""
        if self is NO_COMMANDS:
            return other
        return Split(
            self.work_ns + other.work_ns,
            self.dispatch_ns + other.dispatch_ns,
            self.unsplit_ns + other.unsplit_ns,
            self.known and other.known,
        )

    @property
    def taken_ns(self) -> int:
        """What the commands took in all."""
        return self.work_ns + self.dispatch_ns + self.unsplit_ns


NO_COMMANDS: Final = Split()


class Causes(NamedTuple):
    """What a trial held its worker for, in ns; the sum is ``held`` to the nanosecond."""

    startup_ns: int = 0  # create, ready, preload
    dispatch_ns: int = 0  # getting commands in and results out, those of the set-up too
    contention_ns: int = 0  # of the commands' own time what they waited because others ran; 0 where unknown
    work_ns: int = 0  # the rest of the commands' own time inside the sandbox, those of the set-up too
    unsplit_ns: int = 0  # commands of which only the sum of the two before is known
    harness_ns: int = 0  # our own time between phases and commands
    queued_ns: int = 0  # waiting that throttles imposed
    think_ns: int = 0  # idle on purpose
    failed_ns: int = 0  # all that a trial held that did not succeed


class Measures(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Every duration of one trial in ns. Of a trial that failed only ``held_ns`` and the phases mean what they say."""

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
        """That share of the waiting; 0 where one of them is unknown."""
        return round((self.waiting_ns or 0) * (contended or 0.0))

    def causes(self, *, ok: bool, contended: float | None = None) -> Causes:
        """Where ``held`` went; ``contended``: the share of the cell's waiting that is contention, None: not known."""
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
        )

    def tax_ns(self, *, ok: bool, contended: float | None = None) -> int:
        """What was held beyond think time and work; meaningless unless ``known``. Of a failed trial it is all."""
        if not ok:
            return self.held_ns
        return self.trajectory_ns + self.queued_ns - self.work_ns + self.contention_ns(contended)


NOTHING: Final = Measures()


def has_schedule(arrival: str) -> bool:
    """Whether trials of this arrival, as a cell has it, have an instant of their own to start at."""
    return arrival.partition(":")[0] in SCHEDULED


def start_delay_ns(scheduled_ns: int, start_ns: int) -> int:
    """How late a trial started; instants of one clock."""
    return max(0, start_ns - scheduled_ns)


def held_ns(start_ns: int, end_ns: int, phases: Mapping[str, int]) -> int:
    """What a worker was occupied for: from the first create request to the last action's end, or the failure."""
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
    )


def contended(waiting_ns: float, alone_ns: float) -> float:
    """The share of a cell's waiting that is contention: what exceeds the waiting of the same commands alone.

    ``waiting_ns`` and ``alone_ns`` are means over successful trials, of a cell and of the same one at concurrency 1. A
    command that sleeps, or waits for a disk or a peer, does so alone too: that is no contention.
    """
    return max(0.0, 1 - alone_ns / waiting_ns) if waiting_ns else 0.0
