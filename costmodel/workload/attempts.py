"""Attempts at trajectories of the length of the training run, as rows and as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter, mul
from typing import Final, overload

import msgspec
from msgspec.structs import replace

from costmodel.recording.breakdown import UNKNOWN
from costmodel.recording.trial import TrialColumns


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One attempt at a trajectory: a trial, or a version of a trial. Durations are int ns."""

    trial: int  # versions of one trial are not independent
    actions: int  # of a success: all; of a failure: those before its end
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
    sandbox_ns: int  # time that the provider bills
    commands_ns: int  # from the end of the set-up to the end of the last action
    continued_ns: int  # part of commands_ns: actions and gaps beyond the recorded ones

    def unthrottled(self) -> Attempt:
        """Remove the waits that throttles imposed when the trial was recorded."""
        return replace(self, held_ns=self.held_ns - self.queued_ns, queued_ns=0)

    def warm(self, weight: int) -> Attempt:
        """Remove create and ready, as from a warm pool; the provider bills the same time."""
        cold_ns = self.cold_ns
        return replace(
            self, weight=weight, held_ns=self.held_ns - cold_ns, startup_ns=self.startup_ns - cold_ns, cold_ns=0
        )


FIELDS: Final = Attempt.__struct_fields__


class Sample(Sequence[Attempt]):
    """Attempts as a sequence and as one column per field; each form is derived from the other on demand.

    ``sample.held_ns`` is the occupied time of all attempts, in their order.
    """

    __slots__ = ("_all_ok", "_attempts", "_columns", "_count", "one_each")

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self._attempts: Sequence[Attempt] | None = attempts
        self._columns: dict[str, Sequence[int]] = {}
        self._count = len(attempts)
        self._all_ok: bool | None = None
        self.one_each = False  # True: known to be one attempt of weight 1 per trial, in order

    @classmethod
    def of(cls, attempts: Sequence[Attempt]) -> Sample:
        return attempts if isinstance(attempts, Sample) else cls(attempts)

    @classmethod
    def recorded(cls, trials: TrialColumns, contended: float | None) -> Sample:
        """Return each trial as the attempt that it was; ``contended``: share of the waiting that is contention."""
        count = len(trials.ok)
        none = bytes(count)
        waits = trials.waiting_ns
        sample = cls(())
        sample._attempts, sample._count, sample.one_each = None, count, True
        sample._columns = {
            **{name: getattr(trials, name) for name in FIELDS if name in TrialColumns._fields},
            "trial": range(count),
            "weight": b"\1" * count,
            "contention_ns": [round(max(0, ns) * contended) for ns in waits] if contended else none,
            "cleanup_ns": none,
            "continued_ns": none,
        }
        return sample

    def with_cleanup(self, cleanups_ns: Sequence[int]) -> Sample:
        """Add the clean-up to the occupied time of a ``recorded`` sample; UNKNOWN counts as 0."""
        cleanups = [max(0, ns) for ns in cleanups_ns]
        held = [ns + more for ns, more in zip(self.held_ns, cleanups, strict=True)]
        return self._with({"held_ns": held, "cleanup_ns": cleanups})

    def unthrottled(self) -> Sample:
        """Remove the waits that throttles imposed when the trials were recorded."""
        if not self.one_each:
            return Sample([attempt.unthrottled() for attempt in self])
        held = [ns - queued for ns, queued in zip(self.held_ns, self.queued_ns, strict=True)]
        return self._with({"held_ns": held, "queued_ns": bytes(self._count)})

    def _with(self, columns: Mapping[str, Sequence[int]]) -> Sample:
        sample = Sample(())
        sample._attempts, sample._count, sample.one_each = None, self._count, self.one_each
        sample._columns = {**{name: getattr(self, name) for name in FIELDS}, **columns}
        return sample

    def __getattr__(self, name: str) -> Sequence[int]:
        """Return the column of a field."""
        if name not in FIELDS:
            raise AttributeError(name)
        if (column := self._columns.get(name)) is None:
            column = self._columns[name] = list(map(attrgetter(name), self.listed))
        return column

    @property
    def listed(self) -> Sequence[Attempt]:
        if self._attempts is None:
            columns = {name: self._columns[name] for name in FIELDS}
            columns["ok"] = list(map(bool, columns["ok"]))
            self._attempts = list(map(Attempt, *columns.values()))
        return self._attempts

    @property
    def all_ok(self) -> bool:
        if self._all_ok is None:
            self._all_ok = all(self.ok)
        return self._all_ok

    def of_successes(self, column: Sequence[int]) -> Sequence[int]:
        """Return a column with 0 for failures."""
        return column if self.all_ok else list(map(mul, column, self.ok))

    def of_failures(self, column: Sequence[int]) -> Sequence[int]:
        """Return a column with 0 for successes."""
        if self.all_ok:
            return bytes(self._count)
        return [0 if ok else value for value, ok in zip(column, self.ok, strict=True)]

    @property
    def trajectory_ns(self) -> Sequence[int]:
        """Trajectory latency as in the paper: without think time, throttles and clean-up."""
        columns = zip(self.held_ns, self.queued_ns, self.think_ns, self.cleanup_ns, strict=True)
        return [held - queued - think - cleanup for held, queued, think, cleanup in columns]

    @property
    def tax_ns(self) -> Sequence[int]:
        """Occupied time beyond think, in-sandbox and wrapper time, invalid if unknown; for a failure all of it."""
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

    @property
    def run_known(self) -> bool:
        """Whether the in-sandbox time of every success is known."""
        return UNKNOWN not in self.of_successes(self.run_ns)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self.listed)

    @overload
    def __getitem__(self, index: int) -> Attempt: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Attempt]: ...

    def __getitem__(self, index: int | slice) -> Attempt | Sequence[Attempt]:
        """One by its place, or some."""
        return self.listed[index]
