"""Imported trials in a temporary file: added in the order of reading, returned in the order of time.

Memory: a few integers per trial.
"""

from __future__ import annotations

import hashlib
import heapq
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec

from costmodel import cause_of, events
from taxtui.errors import WriteFailed
from taxtui.importers.protocol import ImportedTrial, Unknown

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ImportedTrial).decode
_BITS: Final = 1 << 256


class Kind(NamedTuple):
    """The key of a cell, without counted concurrency."""

    substrate: str
    variant: str
    substrate_version: str
    cpu_milli: int
    memory_mib: int
    workload: tuple[str, ...]
    concurrency: int  # 0: counted from the instants
    arrival: str


@dataclass(slots=True)
class CellFacts:
    """Summary of a cell after the last trial."""

    kind: Kind
    number: int
    trials: int = 0
    successes: int = 0
    resolution_ns: int = 0  # the coarsest
    unknown: Counter[str] = field(default_factory=Counter)  # successful trials by missing quantity
    concurrency: int = 0  # most trials in flight at once; 0: unknown

    @property
    def missing(self) -> tuple[str, ...]:
        """The quantities that every successful trial lacks, sorted."""
        return tuple(sorted(quantity for quantity, count in self.unknown.items() if count == self.successes))


class Spool:
    """A temporary file of trials, deleted with the process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # __exit__ closes it
        self._offsets = array("q", [0])
        self._starts = array("q")  # Unix; of undated trials since the first undated trial
        self._ends = array("q")  # of the last phase
        self._cells = array("l")
        self._undated_ns = 0  # start of the next undated trial
        self._undated = bytearray()
        self._content = 0
        self.cells: dict[Kind, CellFacts] = {}
        self.outcomes: Counter[str] = Counter()
        self.unknown: Counter[Unknown] = Counter()
        self.limits: Counter[str] = Counter()  # delivered trajectories by the agent's limit
        self.causes: Counter[str] = Counter()  # failed trials by cause

    def __len__(self) -> int:
        """Return the number of trials."""
        return len(self._starts)

    def add(self, trial: ImportedTrial) -> None:
        """Write a trial with recorded names.

        Raises:
            WriteFailed: the disk is full.
        """
        data = _encode(trial)
        try:
            self._file.write(data)
        except OSError as error:
            raise WriteFailed(f"cannot keep trials in a temporary file: {error.strerror}") from error
        self._content = (self._content + int.from_bytes(hashlib.sha256(data).digest())) % _BITS
        end_ns = max([trial.end_ns, *(phase.start_ns + phase.duration_ns for phase in trial.phases)])
        shift_ns = 0 if trial.dated else self._undated_ns
        if not trial.dated:  # sequential: in parallel they would have a concurrency
            self._undated_ns += end_ns
        self._undated.append(not trial.dated)
        self._offsets.append(self._offsets[-1] + len(data))
        self._starts.append(trial.start_ns + shift_ns)
        self._ends.append(end_ns + shift_ns)
        self._cells.append(self._count(trial).number)

    def _count(self, trial: ImportedTrial) -> CellFacts:
        kind = Kind(*(getattr(trial, name) for name in Kind._fields))
        cell = self.cells.get(kind)
        if cell is None:
            cell = self.cells[kind] = CellFacts(kind, len(self.cells))
        outcome = trial.failure.outcome if trial.failure else events.OK
        cell.trials += 1
        cell.resolution_ns = max(cell.resolution_ns, trial.resolution_ns)
        if outcome == events.OK:
            cell.successes += 1
            cell.unknown.update({unknown.quantity for unknown in trial.unknown if not unknown.partly})
        self.outcomes[outcome] += 1
        self.unknown.update(trial.unknown)
        if trial.limit:
            self.limits[trial.limit] += 1
        if trial.failure:
            self.causes[trial.failure.cause or cause_of(trial.failure.error, trial.failure.phase)] += 1
        return cell

    @property
    def content(self) -> str:
        """64 hex digits of all trials, independent of their order."""
        return f"{self._content:064x}"

    @property
    def anchor_ns(self) -> int:
        """Unix time of the first dated trial; 0 without a dated trial."""
        return min((ns for ns, undated in zip(self._starts, self._undated, strict=True) if not undated), default=0)

    def ordered(self) -> Iterator[tuple[ImportedTrial, int, int]]:
        """Yield trials by start, each with cell number and offset of the instants to the anchor in ns.

        Sets the cells' concurrency before the first trial.
        """
        anchor_ns = self.anchor_ns
        for index, undated in enumerate(self._undated):
            shift_ns = 0 if undated else anchor_ns
            self._starts[index] -= shift_ns
            self._ends[index] -= shift_ns
        order = sorted(range(len(self)), key=self._starts.__getitem__)
        self._count_in_flight(order)
        for index in order:
            self._file.seek(self._offsets[index])
            trial = _decode(self._file.read(self._offsets[index + 1] - self._offsets[index]))
            yield trial, self._cells[index], trial.start_ns - self._starts[index]

    def _count_in_flight(self, order: list[int]) -> None:
        by_number = {cell.number: cell for cell in self.cells.values()}
        in_flight: dict[int, list[int]] = {number: [] for number in by_number}  # a heap of ends
        for index in order:
            if self._undated[index]:
                continue
            ends = in_flight[self._cells[index]]
            while ends and ends[0] <= self._starts[index]:
                heapq.heappop(ends)
            heapq.heappush(ends, self._ends[index])
            cell = by_number[self._cells[index]]
            cell.concurrency = max(cell.concurrency, len(ends))
        for cell in by_number.values():
            cell.concurrency = cell.kind.concurrency or cell.concurrency

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()
