"""A cell as a row of the tables: its name, its statistics, its place among comparable rows, reasons to doubt it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Final, NamedTuple

from costmodel import (
    NOT_RECORDED,
    WORK_FIELDS,
    Basis,
    Between,
    CellIdentity,
    Estimate,
    Exposure,
    Interval,
    MedianDispatch,
    Percentile,
    Pool,
    RecordedTrial,
    Reference,
    RunKey,
    Stability,
    breakdown,
    check_reference_used,
    repetitions,
    stability,
    warnings,
    wilson_interval,
)
from taxtui.report.measured.samples import column
from taxtui.report.measured.summary import DurationSummary, not_negative, summarize
from taxtui.terminal_text import clean

PROVENANCES: Final = {warnings.STAND_IN: "STAND-IN", warnings.IMPORTED: "IMPORTED"}
"""Beginning of a row's label where it was not measured at the provider."""
TAXES: Final = ("startup", "dispatch", "contention", "harness", "queued", "failed")
"""The causes of held that the tax consists of: all but work and think."""

PRELOADED: Final = "preload_in_trial"
HELD: Final = "held"
"""Part of a trial that is untold where the source has only parts of the occupied time."""
USUAL: Final = {"arrival": ("sequential", "closed"), "think": ("0s",), "acquire": ("create",)}
"""Identity that no column shows; a row where it is something else says so among its flags."""


class Rank(NamedTuple):
    """The best and the worst place that the intervals of the medians allow; a tie where they differ."""

    best: int
    worst: int


class Ranks:
    """The places of rows among each other: one has as many before it as have their upper limit below its lower one."""

    def __init__(self, rivals: Sequence[DurationSummary]) -> None:
        self._count = len(rivals)
        self._limits = _Limits([item.p50 for item in rivals])
        by_runs: dict[frozenset[RunKey], list[DurationSummary]] = {}
        for item in rivals:
            by_runs.setdefault(item.estimate.runs, []).append(item)
        self._together = {
            runs: (_Limits([item.p50 for item in group]), _Limits([item.middle for item in group]))
            for runs, group in by_runs.items()
        }

    def of(self, own: DurationSummary) -> Rank | None:
        """Return the rank of one row; None where there is no other. No limit of its own median is beyond the other."""
        if self._count < 2:
            return None
        apart, together = self._together[own.estimate.runs]
        faster = self._limits.below(own.p50) - apart.below(own.p50) + together.below(own.middle)
        slower = self._limits.above(own.p50) - apart.above(own.p50) + together.above(own.middle)
        return Rank(1 + faster, self._count - slower)


class _Limits:
    """The limits of some medians."""

    def __init__(self, medians: Sequence[Percentile]) -> None:
        self._lows = sorted(median.low for median in medians if median.low is not None)
        self._highs = sorted(median.high for median in medians if median.high is not None)

    def below(self, own: Percentile) -> int:
        return 0 if own.low is None else bisect_left(self._highs, own.low)

    def above(self, own: Percentile) -> int:
        return 0 if own.high is None else len(self._lows) - bisect_right(self._lows, own.high)


class Tax(NamedTuple):
    """Per successful trial, in ns: all that workers were held for, think time apart, beyond the commands' own time."""

    total: Interval
    estimate: Estimate  # of the same, by run
    share: float  # of held
    causes: dict[
        str, float | None
    ]  # what it consists of, by the names of ``breakdown.Causes``; None: not known, and part of work


class MeasuredRow:
    """One cell. A statistic is computed when it is first asked for."""

    def __init__(self, cell: Pool, run_sd: float | None = None) -> None:
        """A row that stands alone; ``rows_of`` puts it among others. ``run_sd`` as ``costmodel.TrainingRun`` has it."""
        self.cell = cell
        self.assume = repetitions.assumed(cell.identity.substrate, run_sd)
        self.identity = cell.identity
        self.length = cell.length
        self.own_label = clean(f"{PROVENANCES.get(cell.provenance, '')} {cell.identity.label}".strip())
        self.scheduled = breakdown.has_schedule(cell.identity.arrival)
        untold = {name for item in cell.unreported for name in NOT_RECORDED.get(item, ())}
        self.untold = frozenset(untold if self.scheduled else untold | {"response"})  # columns
        self.median_dispatch: MedianDispatch | None = None  # of the substrate, from a reference
        self.label = self.own_label  # numbered where others would look the same
        self.flags = _flags(cell)
        self.peers: list[MeasuredRow] = [self]
        self.ranks: dict[str, Ranks] = {}  # of all peers, by column: shared with them
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
    def comparable(self) -> tuple[Any, ...]:
        """Equal for rows that may be ranked; what imitates a provider is never ranked with what was measured."""
        identity = self.identity
        first = identity.tier, identity.actions, identity.mode, identity.concurrency
        work = (getattr(identity, field) for field in WORK_FIELDS)
        return (*first, *work, self.length, self.cell.provenance)

    @cached_property
    def exposure(self) -> Exposure | None:
        return self.cell.exposure

    @cached_property
    def failures(self) -> Interval:
        """The share of trials that failed or timed out, with Wilson's interval."""
        return wilson_interval(self.failed, len(self.cell.trials))

    @property
    def failed(self) -> int:
        return len(self.cell.trials) - self.cell.succeeded

    @cached_property
    def basis(self) -> Basis | None:
        """The basis of the between-repetition part of its intervals, from completion; None without a success."""
        summary = self.summary("trajectory")
        return None if summary is None else repetitions.basis(summary.estimate, self.assume)

    @cached_property
    def stability(self) -> Stability:
        runs: dict[RunKey, list[int]] = {}
        for trial in self.good:
            runs.setdefault(trial.run, []).append(trial.measures.trajectory_ns)
        return stability(list(runs.values()))

    @cached_property
    def held_ns(self) -> float | None:
        """All that workers were held for, per successful trial; None where the source has only parts of it."""
        if HELD in self.untold:
            return None
        return self._per_success(sum(trial.measures.held_ns for trial in self.cell.trials))

    @cached_property
    def work_ns(self) -> float | None:
        """The commands' own time less contention, per successful trial; None where it is not known of all."""
        if not all(trial.measures.divided for trial in self.good):
            return None
        contended = self.cell.contended
        return self._per_success(sum(t.measures.work_ns - t.measures.contention_ns(contended) for t in self.good))

    @cached_property
    def tax(self) -> Tax | None:
        """None where nothing succeeded, or the commands' own time is not known of all."""
        trials, held, work = self.cell.trials, self.held_ns, self.work_ns
        if not held or work is None:
            return None
        contended = self.cell.contended
        taxes = [trial.measures.tax_ns(ok=trial.ok, contended=contended) for trial in trials]
        origins = [(trial.run, trial.block) for trial in trials]
        result = repetitions.estimate(taxes, [trial.ok for trial in trials], origins)
        total = repetitions.interval(result, self.assume)
        parts = (trial.measures.causes(ok=trial.ok, contended=contended) for trial in trials)
        sums = breakdown.Causes(*map(sum, zip(*parts, strict=True)))
        causes = {cause: self._per_success(getattr(sums, f"{cause}_ns")) for cause in TAXES}
        if contended is None:
            causes["contention"] = None  # and part of work
        return Tax(not_negative(total), result, total.value / held, causes)

    @cached_property
    def tax_between_ns(self) -> Between | None:
        """Per successful trial, where the tax is unknown; with the dispatch of a reference, if there is one."""
        if not self.good or self.held_ns is None or self.tax is not None:
            return None
        contended = self.cell.contended
        most = sum(trial.measures.tax_ns(ok=trial.ok, contended=contended) for trial in self.cell.trials)
        median = self.median_dispatch
        unsplit = [(trial.measures.unsplit_ns, len(trial.durations_ns)) for trial in self.good]
        least = most - sum(ns - (median.of(actions, ns) if median else 0) for ns, actions in unsplit)
        return Between(max(0, least) / len(self.good), most / len(self.good))

    def summary(self, name: str) -> DurationSummary | None:
        if name not in self._summaries:
            origins = [(trial.run, trial.block) for trial in self.good]
            told = name not in self.untold
            self._summaries[name] = summarize(column(self.good, name), origins, self.assume) if told else None
        return self._summaries[name]

    def mean_ns(self, name: str) -> float | None:
        if name == "contention":
            contended = self.cell.contended
            waits = sum(trial.measures.contention_ns(contended) for trial in self.good)
            return None if contended is None else self._per_success(waits)
        if name not in self._means:  # a mean alone needs no order of the values, nor intervals
            values = () if name in self.untold else column(self.good, name).values
            self._means[name] = sum(values) / len(values) if values else None
        mean = self._means[name]
        if mean is None:
            return None
        return mean - ((self.mean_ns("contention") or 0.0) if name == "work" else 0.0)

    def rank(self, name: str) -> Rank | None:
        """Return the rank among its peers, the smallest median first; None without a peer, or where it was disturbed.

        What was measured in the same runs is compared as it was; else how much runs differ is part of it.
        """
        own = self.summary(name)
        if own is None or warnings.DISTURBED in self.flags:
            return None
        if name not in self.ranks:
            rivals = [row for row in self.peers if warnings.DISTURBED not in row.flags]
            self.ranks[name] = Ranks([item for row in rivals if (item := row.summary(name))])
        return self.ranks[name].of(own)

    def _per_success(self, total_ns: int) -> float | None:
        return total_ns / len(self.good) if self.good else None


def rows_of(cells: Sequence[Pool], run_sd: float | None = None) -> list[MeasuredRow]:
    """The rows of all cells with a counted trial; those that may be ranked stand together."""
    rows = sorted((MeasuredRow(cell, run_sd) for cell in cells if cell.trials), key=lambda row: row.comparable)
    for _, group in groupby(rows, lambda row: row.comparable):
        peers, ranks = list(group), dict[str, Ranks]()
        differs = len({peer.identity.environment for peer in peers}) > 1
        for row in peers:
            row.peers, row.ranks = peers, ranks
            row.flags = [*warnings.including(row.flags, warnings.ENVIRONMENT)] if differs else row.flags
    return rows


def bound(rows: Sequence[MeasuredRow], reference: Reference) -> None:
    """Bound the tax of rows that do not tell it with the dispatch of a reference.

    Raises:
        TrainingRunError: there is no such row, or none on a substrate of the reference.
    """
    unknown = [row for row in rows if row.tax_between_ns is not None]
    check_reference_used(reference, (row.identity.substrate for row in unknown))
    for row in unknown:
        row.median_dispatch = reference.get(row.identity.substrate)
        del row.tax_between_ns  # computed without it


def namesakes(rows: Sequence[MeasuredRow]) -> dict[str, str]:
    """Number the rows that would look the same; numbered label → what of its identity the others differ in."""
    result = {}
    names = [(row.own_label, row.details) for row in rows]
    for name in dict.fromkeys(names):
        same = [row for row, group in zip(rows, names, strict=True) if group == name]
        fields = [field for field in CellIdentity._fields if len({getattr(row.identity, field) for row in same}) > 1]
        for number, row in enumerate(same if fields else (), 1):
            row.label = f"{row.own_label} #{number}"
            differing = (f"{field} {clean(str(getattr(row.identity, field)))}" for field in fields)
            result[f"{row.label} {row.details}"] = ", ".join(differing)
    return result


def _flags(cell: Pool) -> list[str]:
    doubts = {
        warnings.STAND_IN: cell.provenance == warnings.STAND_IN,
        warnings.IMPORTED: cell.provenance == warnings.IMPORTED,
        warnings.DISTURBED: cell.disturbed,
        warnings.DISTORTED: cell.distorted,
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
