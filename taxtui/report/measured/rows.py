"""A cell as a row of the tables: names, statistics and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from costmodel import (
    NOT_RECORDED,
    WORK_FIELDS,
    Basis,
    CellIdentity,
    Exposure,
    Interval,
    Pool,
    RecordedTrial,
    breakdown,
    repetitions,
    warnings,
    wilson_interval,
)
from taxtui.report.measured.samples import DurationSummary, column, summarize
from taxtui.terminal_text import clean

PROVENANCES: Final = {warnings.STAND_IN: "STAND-IN", warnings.IMPORTED: "IMPORTED"}
"""Provenance of an unmeasured row → prefix of its label."""
PARTS: Final = ("create", "ready", "preload", "work", "contention", "dispatch", "unsplit", "wrapper", "harness")
"""Parts of a completion."""

PRELOADED: Final = "preload_in_trial"
HELD: Final = "held"
"""Quantity that is missing if the source has only parts of the occupied time."""
USUAL: Final = {"arrival": ("sequential", "closed"), "think": ("0s",), "acquire": ("create",)}
"""Field of the identity without a column → usual values; other values are a warning."""


def column_of(part: str) -> str:
    """Return the column of a part of a trial; dispatch and wrapper are sums over set-up and actions."""
    return f"{part}_total" if part in ("dispatch", "wrapper") else part


class MeasuredRow:
    """One cell. Each statistic is computed on first use."""

    def __init__(self, cell: Pool, run_sd: float | None = None) -> None:
        """``run_sd``: as in ``costmodel.TrainingRun``."""
        self.cell = cell
        self.assume = repetitions.assumed(cell.identity.substrate, run_sd)
        self.identity = cell.identity
        self.length = cell.length
        self.own_label = clean(f"{PROVENANCES.get(cell.provenance, '')} {cell.identity.label}".strip())
        self.scheduled = breakdown.has_schedule(cell.identity.arrival)
        missing = {name for item in cell.unreported for name in NOT_RECORDED.get(item, ())}
        self.missing = frozenset(missing if self.scheduled else missing | {"response"})  # columns without data
        self.label = self.own_label  # numbered if rows have equal names
        self.flags = _flags(cell)
        self._summaries: dict[str, DurationSummary | None] = {}
        self._means: dict[str, float | None] = {}

    @cached_property
    def good(self) -> list[RecordedTrial]:
        return self.cell.successes

    @property
    def details(self) -> str:
        identity = self.identity
        return clean(f"{identity.tier} {self.length} {identity.mode} c{identity.concurrency}")

    @property
    def key(self) -> tuple[CellIdentity, str, float]:
        """Key of the row in all tables, as that of its projection."""
        return self.identity, self.cell.provenance, self.length.actions

    @property
    def comparable(self) -> tuple[Any, ...]:
        """A key that is equal for rows of equal work and equal provenance."""
        identity = self.identity
        first = identity.tier, identity.actions, identity.mode, identity.concurrency
        work = (getattr(identity, field) for field in WORK_FIELDS)
        return (*first, *work, self.length, self.cell.provenance)

    @cached_property
    def exposure(self) -> Exposure | None:
        return self.cell.exposure

    @cached_property
    def failures(self) -> Interval:
        """Share of failed and timed-out trials, with Wilson's interval."""
        return wilson_interval(self.failed, len(self.cell.trials))

    @property
    def failed(self) -> int:
        return len(self.cell.trials) - self.cell.succeeded

    @cached_property
    def basis(self) -> Basis | None:
        """Basis of the variation between repetitions, from completion; None without a success."""
        summary = self.summary("trajectory")
        return None if summary is None else repetitions.basis(summary.estimate, self.assume)

    def summary(self, name: str) -> DurationSummary | None:
        if name not in self._summaries:
            origins = [(trial.run, trial.block) for trial in self.good]
            present = name not in self.missing
            self._summaries[name] = summarize(column(self.good, name), origins, self.assume) if present else None
        return self._summaries[name]

    def mean_ns(self, name: str) -> float | None:
        if name == "contention":
            contended = self.cell.contended
            waits = sum(trial.measures.contention_ns(contended) for trial in self.good)
            return None if contended is None else self._per_success(waits)
        if name not in self._means:  # cheaper than a summary
            values = () if name in self.missing else column(self.good, name).values
            self._means[name] = sum(values) / len(values) if values else None
        mean = self._means[name]
        if mean is None:
            return None
        return mean - ((self.mean_ns("contention") or 0.0) if name == "work" else 0.0)

    def part_ns(self, part: str) -> float | None:
        return self.mean_ns(column_of(part))

    def _per_success(self, total_ns: int) -> float | None:
        return total_ns / len(self.good) if self.good else None


def rows_of(cells: Sequence[Pool], run_sd: float | None = None) -> list[MeasuredRow]:
    """Return the rows of all cells with a counted trial, with comparable rows together."""
    rows = sorted((MeasuredRow(cell, run_sd) for cell in cells if cell.trials), key=lambda row: row.comparable)
    for _, group in groupby(rows, lambda row: row.comparable):
        peers = list(group)
        differs = len({peer.identity.environment for peer in peers}) > 1
        for row in peers:
            row.flags = [*warnings.ordered([*row.flags, warnings.ENVIRONMENT])] if differs else row.flags
    return rows


def namesakes(rows: Sequence[MeasuredRow]) -> dict[str, str]:
    """Number the rows with equal names; return numbered label → differing fields of the identity."""
    result = {}
    names = [(row.own_label, row.details) for row in rows]
    for name in dict.fromkeys(names):
        same = [row for row, row_name in zip(rows, names, strict=True) if row_name == name]
        fields = [field for field in CellIdentity._fields if len({getattr(row.identity, field) for row in same}) > 1]
        for number, row in enumerate(same if fields else (), 1):
            row.label = f"{row.own_label} #{number}"
            differing = (f"{field} {clean(str(getattr(row.identity, field)))}" for field in fields)
            result[f"{row.label} {row.details}"] = ", ".join(differing)
    return result


def _flags(cell: Pool) -> list[str]:
    exposure = cell.exposure
    doubts = {
        warnings.STAND_IN: cell.provenance == warnings.STAND_IN,
        warnings.IMPORTED: cell.provenance == warnings.IMPORTED,
        warnings.DISTURBED: cell.disturbed,
        warnings.DISTORTED: exposure is not None and exposure.matters,
        warnings.INCOMPLETE: not cell.complete,
        warnings.NO_SUCCESS: not cell.succeeded,
        warnings.CONTENTION_UNKNOWN: cell.contention_unknown,
        warnings.RUN_UNKNOWN: not cell.run_known,
        PRELOADED: cell.preload == "trial",
    }
    identity = cell.identity._asdict()
    unusual = [f"{field} {clean(identity[field])}" for field, usual in USUAL.items() if identity[field] not in usual]
    doubts |= {flag: quantity in cell.unreported for quantity, flag in warnings.UNTOLD.items()}
    return [*warnings.ordered({flag: None for flag, holds in doubts.items() if holds}), *unusual]
