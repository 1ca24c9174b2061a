"""Recorded trials: one by one, or, of another process, what every projection needs of them as columns.

Of a million trials most commands need a dozen numbers each. So what another process has read arrives as columns of
these, and the whole trials as bytes, which wait in a file and become trials when somebody asks for one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, overload

import msgspec

from costmodel.recording.breakdown import NO_COMMANDS, NOTHING, UNKNOWN, Measures, Split
from costmodel.statistics.repetitions import Origin, RunKey

if TYPE_CHECKING:
    from costmodel.recording.parallel.scratch import Scratch

    _Column = array[int]
else:
    _Column = array  # which takes no parameter at run time

_EMPTY: Final = msgspec.field(default_factory=lambda: array("q"))


class RecordedTrial(msgspec.Struct, array_like=True, eq=False, gc=False):
    """One finished trial that counts: a success, a failure or a timeout. Durations are int ns."""

    run: RunKey
    block: int
    start_ns: int = 0
    worker: int = 0  # whose clock its instants are on
    end_ns: int = 0
    freed_ns: int = 0  # after the clean-up: its lane can take the next
    exposed: float = 0.0  # the share of its time in seconds in which the measuring process was not fit
    ok: bool = False
    failed_in: str = ""  # the phase where it ended that did not succeed, and the class of its error
    error: str = ""
    group: str = ""  # rollouts of one prompt; "" where none is told
    complete: bool = True  # no action is missing between those that are there
    measures: Measures = NOTHING  # of the trial at its recorded length
    cpu_ns: int | None = None  # of set-up and actions; None: not of all
    sandbox_ns: int = 0  # the provider's clock: accepted create request to end, clean-up apart
    setup: Split = NO_COMMANDS  # the set-up's commands
    actions: Split = NO_COMMANDS
    gap_ns: int = 0  # harness time before actions
    durations_ns: _Column = _EMPTY  # per action
    gaps_ns: _Column = _EMPTY  # per action: harness time before it; empty where all are 0
    thinks_ns: _Column = _EMPTY  # per action; empty where all are 0
    runs_ns: _Column = _EMPTY  # per action: inside the sandbox, or UNKNOWN


def _unpacked(kind: type, column: bytes) -> _Column:
    return array("q", column)


_WIDTHS: Final = {"b": 7, "i": 31, "q": 63}
"""Bits that fit, by the kind of array: most columns of most recordings are all 0."""
_PACKER: Final = msgspec.msgpack.Encoder(enc_hook=array.tobytes)
_UNPACKER: Final = msgspec.msgpack.Decoder(list[RecordedTrial], dec_hook=_unpacked)


class TrialColumns(NamedTuple):
    """Trials at their recorded length, a value of each per column; int ns where a column does not say otherwise."""

    origins: list[tuple[Origin, int]]  # run and block, with how many trials in a row have them
    consistent: bool  # the measures are what the commands amount to, in every trial
    exposed: Sequence[float]  # shares
    ok: Sequence[int]  # 1 or 0
    actions: Sequence[int]  # how many
    held_ns: Sequence[int]
    think_ns: Sequence[int]
    queued_ns: Sequence[int]
    cold_ns: Sequence[int]  # create and ready, not more than held
    startup_ns: Sequence[int]
    run_ns: Sequence[int]  # inside the sandbox, set-up included, or UNKNOWN
    cpu_ns: Sequence[int]  # or UNKNOWN
    dispatch_ns: Sequence[int]  # 0 where the run is unknown
    unsplit_ns: Sequence[int]  # 0 where it is known
    harness_ns: Sequence[int]
    cleanup_ns: Sequence[int]  # or UNKNOWN
    sandbox_ns: Sequence[int]  # the provider's clock, clean-up included
    commands_ns: Sequence[int]  # actions, gaps and think time
    waiting_ns: Sequence[int]  # or UNKNOWN

    @property
    def each_origin(self) -> list[Origin]:
        """Run and block of each trial."""
        return list(chain.from_iterable(repeat(origin, count) for origin, count in self.origins))

    @property
    def runs(self) -> set[RunKey]:
        """Those that the trials are of."""
        return {run for (run, _), _ in self.origins}

    def part(self, start: int, end: int) -> TrialColumns:
        """Of the trials from one place to before another."""
        origins = [(origin, len(list(same))) for origin, same in groupby(self.each_origin[start:end])]
        exposed, *columns = (column[start:end] for column in self[2:])
        return TrialColumns(origins, self.consistent, exposed, *columns)  # type: ignore[arg-type]

    @classmethod
    def of(cls, trials: Sequence[RecordedTrial]) -> TrialColumns:
        """Of any trials; those that have columns already keep them."""
        return trials.columns if isinstance(trials, PackedTrials) else _made(trials)

    @classmethod
    def together(cls, parts: Sequence[TrialColumns]) -> TrialColumns:
        """Of the trials of one after those of the other."""
        if len(parts) == 1:
            return parts[0]
        columns = (_joined(column) for column in zip(*(part[2:] for part in parts), strict=True))
        origins = [origin for part in parts for origin in part.origins]
        return cls(origins, all(part.consistent for part in parts), *columns)


def _made(trials: Sequence[RecordedTrial]) -> TrialColumns:
    measures = [trial.measures for trial in trials]
    setups, actions = [trial.setup for trial in trials], [trial.actions for trial in trials]
    splits = list(zip(setups, actions, strict=True))
    known = [setup.known and own.known for setup, own in splits]
    work = [setup.work_ns + own.work_ns for setup, own in splits]
    taken = [own.taken_ns for own in actions]
    cleanups = [own.cleanup_ns for own in measures]
    cpus = [trial.cpu_ns if told else None for trial, told in zip(trials, known, strict=True)]
    keys = [(trial.run, trial.block) for trial in trials]
    return TrialColumns(
        [(origin, len(list(same))) for origin, same in groupby(keys)],
        work == [own.work_ns for own in measures],
        array("d", [trial.exposed for trial in trials]),
        array("b", [trial.ok for trial in trials]),
        *map(
            _packed,
            (
                [len(trial.durations_ns) for trial in trials],
                [own.held_ns for own in measures],
                [own.think_ns for own in measures],
                [own.queued_ns for own in measures],
                [min(own.create_ns + own.ready_ns, own.held_ns) for own in measures],
                [own.startup_ns for own in measures],
                [ns if told else UNKNOWN for ns, told in zip(work, known, strict=True)],
                [UNKNOWN if cpu is None else cpu for cpu in cpus],
                [
                    setup.dispatch_ns + ns - own.work_ns if told else 0
                    for (setup, own), ns, told in zip(splits, taken, known, strict=True)
                ],
                [0 if told else setup.taken_ns + ns for setup, ns, told in zip(setups, taken, known, strict=True)],
                [own.harness_ns for own in measures],
                [UNKNOWN if cleanup is None else cleanup for cleanup in cleanups],
                [max(0, trial.sandbox_ns) + (cleanup or 0) for trial, cleanup in zip(trials, cleanups, strict=True)],
                [ns + trial.gap_ns + trial.measures.think_ns for trial, ns in zip(trials, taken, strict=True)],
                [UNKNOWN if own.waiting_ns is None else own.waiting_ns for own in measures],
            ),
        ),
    )


def _packed(values: list[int]) -> Sequence[int]:
    """In an eighth of the memory and less, where they fit: sums of the longest times that a file may hold do not."""
    least, most = min(values, default=0), max(values, default=0)
    fits = (code for code, bits in _WIDTHS.items() if -(1 << bits) <= least and most < 1 << bits)
    return values if (code := next(fits, None)) is None else array(code, values)


def _joined(columns: Sequence[Sequence[Any]]) -> Sequence[Any]:
    codes = {column.typecode if isinstance(column, array) else "" for column in columns}
    if "" in codes:
        return list(chain.from_iterable(columns))
    whole = array(max(codes, key="bdiq".index))
    for column in columns:
        whole.extend(column if column.typecode == whole.typecode else array(whole.typecode, column))  # type: ignore[attr-defined]
    return whole


class _Packed:
    """Trials of one file from another process."""

    __slots__ = ("_bytes", "_columns", "_place", "_trials", "count")

    def __init__(self, trials: Sequence[RecordedTrial]) -> None:
        self.count = len(trials)
        self._columns, self._place = _made(trials), -1
        self._bytes: Callable[[], bytes] = partial(bytes, _PACKER.encode(trials))
        self._trials: list[RecordedTrial] | None = None

    @property
    def columns(self) -> TrialColumns:
        if self._place < 0 or self.count == len(self._columns.ok):
            return self._columns
        return self._columns.part(self._place, self._place + self.count)

    def put(self, scratch: Scratch) -> None:
        """The whole trials are there from now on."""
        if self._trials is None:
            self._bytes = scratch.put(self._bytes())

    def move(self, whole: TrialColumns, place: int) -> None:
        """Its columns are part of larger ones, from that trial on: they are not kept twice."""
        self._columns, self._place = whole, place

    @property
    def trials(self) -> list[RecordedTrial]:
        if self._trials is None:
            runs: dict[RunKey, RunKey] = {}  # one for each, whichever trial has it
            self._trials, self._bytes = _UNPACKER.decode(self._bytes()), bytes
            for trial in self._trials:
                trial.run = runs.setdefault(trial.run, trial.run)
        return self._trials

    def __getstate__(self) -> tuple[int, TrialColumns, bytes]:
        return self.count, self.columns, self._bytes() if self._trials is None else _PACKER.encode(self._trials)

    def __setstate__(self, state: tuple[int, TrialColumns, bytes]) -> None:
        self.count, self._columns, whole = state
        self._bytes, self._place, self._trials = partial(bytes, whole), -1, None


class PackedTrials(Sequence[RecordedTrial]):
    """Trials that another process has read: they are made when one is asked for, of its file, and then kept."""

    __slots__ = ("_columns", "_parts", "_whole")

    def __init__(self, parts: Sequence[_Packed]) -> None:
        """Of one file after those of the other."""
        self._parts = parts
        self._columns: TrialColumns | None = None
        self._whole: list[RecordedTrial] | None = None

    @classmethod
    def of(cls, trials: Sequence[RecordedTrial]) -> PackedTrials:
        """Any trials, as they get to another process."""
        return trials if isinstance(trials, PackedTrials) else cls([_Packed(trials)])

    def put(self, scratch: Scratch) -> Self:
        """The same, of which the columns alone are in memory."""
        for part in self._parts:
            part.put(scratch)
        return self

    @classmethod
    def together(cls, each: Sequence[Sequence[RecordedTrial]]) -> Sequence[RecordedTrial]:
        """Trials of several files, in their order; a list where one of these is."""
        packed = [trials._parts for trials in each if isinstance(trials, PackedTrials)]
        if packed and len(packed) == len(each):
            return cls([part for parts in packed for part in parts])
        return list(chain.from_iterable(each))

    @property
    def columns(self) -> TrialColumns:
        """What every projection needs of them."""
        if self._columns is None:
            self._columns = TrialColumns.together([part.columns for part in self._parts])
            place = 0
            for part in self._parts:
                part.move(self._columns, place)
                place += part.count
        return self._columns

    def __len__(self) -> int:
        """How many."""
        return sum(part.count for part in self._parts)

    def __iter__(self) -> Iterator[RecordedTrial]:
        """One after the other."""
        return chain.from_iterable(part.trials for part in self._parts)

    @overload
    def __getitem__(self, index: int) -> RecordedTrial: ...

    @overload
    def __getitem__(self, index: slice) -> list[RecordedTrial]: ...

    def __getitem__(self, index: int | slice) -> RecordedTrial | list[RecordedTrial]:
        """One by its place, or some."""
        if self._whole is None:
            self._whole = list(self)
        return self._whole[index]

    def __getstate__(self) -> Sequence[_Packed]:
        """What it is made of."""
        return self._parts

    def __setstate__(self, parts: Sequence[_Packed]) -> None:
        """As it was there."""
        self._parts, self._columns, self._whole = parts, None, None


def origins_of(trials: Iterable[RecordedTrial]) -> list[Origin]:
    """Run and block of each."""
    if isinstance(trials, PackedTrials):
        return trials.columns.each_origin
    return [(trial.run, trial.block) for trial in trials]
