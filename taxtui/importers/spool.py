"""Imported trials: added in the order of reading, returned in the order of time.

Memory: each trial as bytes, about as many as in the recording.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from costmodel import cause_of, events
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


class _Encoded(NamedTuple):
    """A trial as bytes, with the facts that set its place in the recording."""

    data: bytes
    cell: CellFacts
    dated: bool
    start_ns: int  # Unix; of undated trials since the first undated trial
    end_ns: int  # of the last phase


class Spool:
    """The trials of an import, and counts of them."""

    def __init__(self) -> None:
        self._trials: list[_Encoded] = []
        self._undated_ns = 0  # start of the next undated trial
        self._content = 0
        self.cells: dict[Kind, CellFacts] = {}
        self.outcomes: Counter[str] = Counter()
        self.unknown: Counter[Unknown] = Counter()
        self.limits: Counter[str] = Counter()  # delivered trajectories by the agent's limit
        self.causes: Counter[str] = Counter()  # failed trials by cause

    def __len__(self) -> int:
        """Return the number of trials."""
        return len(self._trials)

    def add(self, trial: ImportedTrial) -> None:
        """Add a trial with recorded names."""
        data = _encode(trial)
        self._content = (self._content + int.from_bytes(hashlib.sha256(data).digest())) % _BITS
        end_ns = max([trial.end_ns, *(phase.start_ns + phase.duration_ns for phase in trial.phases)])
        shift_ns = 0 if trial.dated else self._undated_ns
        if not trial.dated:  # sequential: in parallel they would have a concurrency
            self._undated_ns += end_ns
        cell = self._count(trial)
        self._trials.append(_Encoded(data, cell, trial.dated, trial.start_ns + shift_ns, end_ns + shift_ns))

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
        return min((trial.start_ns for trial in self._trials if trial.dated), default=0)

    def ordered(self) -> Iterator[tuple[ImportedTrial, int, int]]:
        """Yield trials by start, each with cell number and offset of the instants to the anchor in ns.

        Sets the cells' concurrency before the first trial.
        """
        anchor_ns = self.anchor_ns
        self._count_in_flight()
        starts_ns = [trial.start_ns - anchor_ns if trial.dated else trial.start_ns for trial in self._trials]
        for index in sorted(range(len(self)), key=starts_ns.__getitem__):
            trial = _decode(self._trials[index].data)
            yield trial, self._trials[index].cell.number, trial.start_ns - starts_ns[index]

    def _count_in_flight(self) -> None:
        in_flight: dict[int, list[int]] = {cell.number: [] for cell in self.cells.values()}  # a heap of ends
        for trial in sorted((trial for trial in self._trials if trial.dated), key=lambda trial: trial.start_ns):
            ends_ns = in_flight[trial.cell.number]
            while ends_ns and ends_ns[0] <= trial.start_ns:
                heapq.heappop(ends_ns)
            heapq.heappush(ends_ns, trial.end_ns)
            trial.cell.concurrency = max(trial.cell.concurrency, len(ends_ns))
        for cell in self.cells.values():
            cell.concurrency = cell.kind.concurrency or cell.concurrency
