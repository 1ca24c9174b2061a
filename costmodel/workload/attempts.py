"""Attempts at trajectories of the length of the training run."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, mul
from typing import Final

import msgspec
from msgspec.structs import replace


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

    def unthrottled(self) -> Attempt:
        """Remove the recorded throttled time."""
        return replace(self, held_ns=self.held_ns - self.queued_ns, queued_ns=0)

    def warm(self, weight: int) -> Attempt:
        """Remove create and ready, as from a warm pool; the provider bills the same time."""
        cold_ns = self.cold_ns
        return replace(
            self, weight=weight, held_ns=self.held_ns - cold_ns, startup_ns=self.startup_ns - cold_ns, cold_ns=0
        )


FIELDS: Final = Attempt.__struct_fields__


class Sample(list[Attempt]):
    """Attempts, with the values of each field as a column: ``sample.held_ns`` is the occupied time of all attempts.

    Immutable once a column was read.
    """

    def __getattr__(self, name: str) -> list[int]:
        """Return the column of a field, which becomes an attribute."""
        if name not in FIELDS:
            raise AttributeError(name)
        column = list(map(attrgetter(name), self))
        setattr(self, name, column)
        return column

    def of_successes(self, column: Sequence[int]) -> list[int]:
        """Return a column with 0 for failures."""
        return list(map(mul, column, self.ok))

    def of_failures(self, column: Sequence[int]) -> list[int]:
        """Return a column with 0 for successes."""
        return [0 if ok else value for value, ok in zip(column, self.ok, strict=True)]

    @property
    def trajectory_ns(self) -> Sequence[int]:
        """Trajectory latency as in the paper: without think time, throttles and clean-up."""
        columns = zip(self.held_ns, self.queued_ns, self.think_ns, self.cleanup_ns, strict=True)
        return [held - queued - think - cleanup for held, queued, think, cleanup in columns]

    @property
    def tax_ns(self) -> Sequence[int]:
        """Occupied time beyond think, in-sandbox and wrapper time, invalid if unknown; for a failure all."""
        columns = (self.ok, self.held_ns, self.think_ns, self.run_ns, self.contention_ns, self.wrapper_ns)
        return [
            held - think - run + contention - wrapper if ok else held
            for ok, held, think, run, contention, wrapper in zip(*columns, strict=True)
        ]

    @property
    def work_ns(self) -> Sequence[int]:
        """Command time without contention; 0 for failures."""
        columns = zip(self.run_ns, self.contention_ns, self.ok, strict=True)
        return [(run - contention) * ok for run, contention, ok in columns]
