"""Attempts at trajectories of the length of the training run, and the cost of actions beyond the recording.

A tier repeats its cycle of actions, so a trial's later cycles predict further actions, with an uncertainty. The first
cycle is slower (files are read from disk, caches fill): it counts only if a trial has no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.intervals import Interval


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One attempt at a trajectory: a trial, or a version of a trial. Durations are int ns."""

    trial: int  # versions of a trial are not independent
    actions: int  # of a success: all; of a failure: actions before the end
    weight: int  # the same total for every trial
    ok: bool
    held_ns: int
    think_ns: int
    queued_ns: int
    cold_ns: int  # create and ready
    startup_ns: int  # create, ready and preload
    run_ns: int  # inside the sandbox, set-up included, or UNKNOWN
    contention_ns: int  # part of run_ns; 0: unknown
    cpu_ns: int  # used by the commands, or UNKNOWN
    dispatch_ns: int  # rest of the commands; invalid where run_ns is UNKNOWN
    wrapper_ns: int  # of taxtui's shell wrappers around the commands; 0 where unknown
    unsplit_ns: int  # whole commands where run_ns is UNKNOWN
    harness_ns: int  # runner gap between phases and commands
    cleanup_ns: int  # part of held_ns
    sandbox_ns: int  # billed by the provider
    continued_ns: int  # actions and gaps beyond the recording

    @property
    def trajectory_ns(self) -> int:
        """Trajectory latency as in the paper: without think time, throttles and clean-up."""
        return self.held_ns - self.queued_ns - self.think_ns - self.cleanup_ns

    @property
    def tax_ns(self) -> int:
        """Occupied time beyond think, in-sandbox and wrapper time, invalid if unknown; for a failure all."""
        useful_ns = self.think_ns + self.run_ns - self.contention_ns + self.wrapper_ns
        return self.held_ns - useful_ns if self.ok else self.held_ns

    @property
    def work_ns(self) -> int:
        """Command time without contention; 0 for failures."""
        return (self.run_ns - self.contention_ns) * self.ok


FIRST_CYCLE: Final = (0.7, 1.05)
"""Range of a later cycle's cost as a share of the first. An assumption, from the shipped recordings:
in 16 series of 50 and 150 actions on local, docker runc and gVisor the mean later cycle took 0.71 to 1.00 of the first.
"""


def continued(column: Sequence[int], extra: int, cycle: int) -> int:
    """Return the sum of ``extra`` more values in whole ns, each the mean of its position over later cycles of a trial.

    The later half of the trial's cycles counts, without the first unless there is no later cycle. A slow sandbox tends
    to stay slow, so other trials do not contribute. 0 for an empty column.
    """
    if not extra or not len(column):
        return 0
    cycle = min(cycle, len(column))
    cycles = later_cycles(len(column), cycle)
    later = column[len(column) - cycle * cycles :]
    whole, rest = divmod(extra, cycle)
    total = whole * sum(later) + sum(sum(later[start : start + rest]) for start in range(0, len(later), cycle))
    return (2 * total + cycles) // (2 * cycles)


def later_cycles(recorded: int, cycle: int) -> int:
    """Return the number of averaged cycles: half of the whole cycles, at least one."""
    return max(1, recorded // cycle // 2)


def later_change(trials: Iterable[RecordedTrial], cycle: int) -> float | None:
    """Return the pooled relative difference between later and earlier cycles; None: no trial has a second cycle.

    The first cycle does not count unless there are only two.
    """
    later = before = 0.0  # mean cycle, summed over trials with two or more
    for trial in trials:
        recorded = len(trial.durations_ns)
        if not trial.ok or recorded < 2 * cycle:
            continue
        cycles = later_cycles(recorded, cycle)
        start = recorded - cycles * cycle
        first = cycle if start >= 2 * cycle else start - cycle
        later += _duration_ns(trial, start, recorded) / cycles
        before += _duration_ns(trial, first, start) * cycle / (start - first)
    return abs(later / before - 1) if later and before else None


def extrapolation_error(trials: Iterable[RecordedTrial], cycle: int) -> Interval:
    """Return the error of the time beyond the recorded actions, as shares of its estimate."""
    change = later_change(trials, cycle)
    low, high = FIRST_CYCLE if change is None else (max(0.0, 1 - change), 1 + change)
    return Interval(0.0, low - 1, high - 1)


def _duration_ns(trial: RecordedTrial, start: int, end: int) -> int:
    return sum(trial.durations_ns[start:end]) + sum(trial.gaps_ns[start:end])
