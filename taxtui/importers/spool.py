"""Imported trials: added in the order of reading, returned in the order of time.

Memory: each trial as bytes, about as many as in the recording.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec

from costmodel import events
from taxtui.importers.trial import ImportedTrial, Unknown

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ImportedTrial).decode
_BITS: Final = 1 << 256
CELL_FIELDS: Final = tuple(
    ["substrate", "variant", "substrate_version", "cpu_milli", "memory_mib", "workload", "concurrency", "arrival"]
)
"""Fields of a trial that are equal in a cell."""


@dataclass(slots=True)
class CellFacts:
    """Summary of a cell after the last trial."""

    first: ImportedTrial  # with the cell's fields
    number: int
    trials: int = 0
    successes: int = 0
    resolution_ns: int = 0  # the coarsest
    unknown: Counter[str] = field(default_factory=Counter)  # successful trials by missing quantity
    concurrency: int = 0  # as recorded, else the most trials in flight at once; 0: unknown

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
        self.cells: dict[tuple[object, ...], CellFacts] = {}
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
        key = tuple(getattr(trial, name) for name in CELL_FIELDS)
        cell = self.cells.setdefault(key, CellFacts(trial, len(self.cells)))
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
            self.causes[trial.failure.cause] += 1
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
        """Yield trials by start, each with cell number and offset of the instants to the anchor in ns."""
        anchor_ns = self.anchor_ns
        starts_ns = [trial.start_ns - anchor_ns if trial.dated else trial.start_ns for trial in self._trials]
        for index in sorted(range(len(self)), key=starts_ns.__getitem__):
            trial = _decode(self._trials[index].data)
            yield trial, self._trials[index].cell.number, trial.start_ns - starts_ns[index]

    def count_in_flight(self) -> None:
        """Set the cells' concurrency, after the last trial."""
        steps: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for trial in self._trials:
            if trial.dated:
                steps[trial.cell.number] += ((trial.start_ns, 1), (max(trial.end_ns, trial.start_ns + 1), -1))
        for cell in self.cells.values():
            in_flight = accumulate(step for _, step in sorted(steps[cell.number]))
            cell.concurrency = cell.first.concurrency or max(in_flight, default=0)
