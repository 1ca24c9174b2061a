"""Attempts at a trajectory of the length that is asked for: one by one, and as columns of what each of them has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter, mul
from typing import Final, overload

import msgspec
from msgspec.structs import replace

from costmodel.recording.breakdown import UNKNOWN
from costmodel.recording.trial import TrialColumns


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One attempt at a trajectory of the length asked for: a trial, or a version of it. Durations are int ns."""

    trial: int  # versions of one trial are not independent
    actions: int  # that a success has; a failure's are those that it ended after
    weight: int  # the same total for every trial
    ok: bool
    held_ns: int
    think_ns: int
    queued_ns: int
    cold_ns: int  # create and ready
    startup_ns: int  # that and preload
    run_ns: int  # inside the sandbox, set-up included, or UNKNOWN
    contention_ns: int  # of that; 0 where it is not known
    cpu_ns: int  # used by the commands, or UNKNOWN
    dispatch_ns: int  # the rest of every command; meaningless where run_ns is UNKNOWN
    unsplit_ns: int  # every command, whole, where run_ns is UNKNOWN
    harness_ns: int  # our own time between phases and commands
    cleanup_ns: int  # as far as it is part of held
    sandbox_ns: int  # the provider's clock
    commands_ns: int  # from the set-up's end to the last action's: actions, gaps and think time
    continued_ns: int  # of them actions and gaps beyond the recorded ones

    def unthrottled(self) -> Attempt:
        """The same without the waits that throttles imposed when it was recorded."""
        return replace(self, held_ns=self.held_ns - self.queued_ns, queued_ns=0)

    def warm(self, weight: int) -> Attempt:
        """The same, had a ready sandbox been there; the provider's clock ran all the same."""
        cold_ns = self.cold_ns
        return replace(
            self, weight=weight, held_ns=self.held_ns - cold_ns, startup_ns=self.startup_ns - cold_ns, cold_ns=0
        )


FIELDS: Final = Attempt.__struct_fields__


class Sample(Sequence[Attempt]):
    """Attempts with a column by the name of each of their fields; either is made of the other when it is asked for.

    ``sample.held_ns`` is what all attempts held their worker for, in their order.
    """

    __slots__ = ("_all_ok", "_attempts", "_columns", "_count", "one_each")

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        """Of these, by trial."""
        self._attempts: Sequence[Attempt] | None = attempts
        self._columns: dict[str, Sequence[int]] = {}
        self._count = len(attempts)
        self._all_ok: bool | None = None
        self.one_each = False  # of each trial one, in their order, with a weight of 1: told where it is known

    @classmethod
    def of(cls, attempts: Sequence[Attempt]) -> Sample:
        """What already is one stays so."""
        return attempts if isinstance(attempts, Sample) else cls(attempts)

    @classmethod
    def recorded(cls, trials: TrialColumns, contended: float | None) -> Sample:
        """Of each trial the attempt that it was; ``contended`` is the share of the waiting that is contention."""
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
        """Of ``recorded`` the same, held by their workers until each was cleaned up; UNKNOWN is none."""
        cleanups = [max(0, ns) for ns in cleanups_ns]
        held = [ns + more for ns, more in zip(self.held_ns, cleanups, strict=True)]
        return self._with({"held_ns": held, "cleanup_ns": cleanups})

    def unthrottled(self) -> Sample:
        """Each without the waits that throttles imposed when it was recorded."""
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
        """A field of all attempts."""
        if name not in FIELDS:
            raise AttributeError(name)
        if (column := self._columns.get(name)) is None:
            column = self._columns[name] = list(map(attrgetter(name), self.listed))
        return column

    @property
    def listed(self) -> Sequence[Attempt]:
        """One by one."""
        if self._attempts is None:
            columns = {name: self._columns[name] for name in FIELDS}
            columns["ok"] = list(map(bool, columns["ok"]))
            self._attempts = list(map(Attempt, *columns.values()))
        return self._attempts

    @property
    def all_ok(self) -> bool:
        """Whether none failed."""
        if self._all_ok is None:
            self._all_ok = all(self.ok)
        return self._all_ok

    def of_successes(self, column: Sequence[int]) -> Sequence[int]:
        """A column that is 0 where the attempt failed."""
        return column if self.all_ok else list(map(mul, column, self.ok))

    def of_failures(self, column: Sequence[int]) -> Sequence[int]:
        """A column that is 0 where it succeeded."""
        if self.all_ok:
            return bytes(self._count)
        return [0 if ok else value for value, ok in zip(column, self.ok, strict=True)]

    @property
    def trajectory_ns(self) -> Sequence[int]:
        """What the paper calls trajectory latency: without think time and throttles; clean-up is none of it, ever."""
        columns = zip(self.held_ns, self.queued_ns, self.think_ns, self.cleanup_ns, strict=True)
        return [held - queued - think - cleanup for held, queued, think, cleanup in columns]

    @property
    def tax_ns(self) -> Sequence[int]:
        """Held beyond think time and the commands' own; meaningless where that is unknown. Of a failure it is all."""
        columns = zip(self.ok, self.held_ns, self.think_ns, self.run_ns, self.contention_ns, strict=True)
        return [held - think - run + contention if ok else held for ok, held, think, run, contention in columns]

    @property
    def work_ns(self) -> Sequence[int]:
        """The commands' own time of a success, contention left out; 0 of a failure."""
        columns = zip(self.run_ns, self.contention_ns, self.ok, strict=True)
        return [(run - contention) * ok for run, contention, ok in columns]

    @property
    def run_known(self) -> bool:
        """Whether the time inside the sandbox is known for every success."""
        return UNKNOWN not in self.of_successes(self.run_ns)

    def __len__(self) -> int:
        """How many."""
        return self._count

    def __iter__(self) -> Iterator[Attempt]:
        """One by one."""
        return iter(self.listed)

    @overload
    def __getitem__(self, index: int) -> Attempt: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Attempt]: ...

    def __getitem__(self, index: int | slice) -> Attempt | Sequence[Attempt]:
        """One by its place, or some."""
        return self.listed[index]
