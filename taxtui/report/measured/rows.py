"""A cell as a row of the tables: its name, its statistics, its place among comparable rows, reasons to doubt it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Final, NamedTuple

from costmodel import flags
from costmodel.measures import Causes
from costmodel.percentiles import Percentile
from costmodel.recording import CellIdentity, RecordedTrial
from costmodel.samples import Pool
from costmodel.uncertainty import Interval, ratio_interval, wilson
from taxtui.report.measured.samples import column
from taxtui.report.measured.summary import DurationSummary, clusters_of, not_negative, summarize
from taxtui.terminal_text import clean

NS_PER_HOUR: Final = 3_600 * 10**9
STAND_IN: Final = "stand_in"
TAXES: Final = ("startup", "dispatch", "harness", "queued", "failed")
"""The causes of held that the tax consists of: all but work and think."""

PRELOADED: Final = "preload_in_trial"
USUAL: Final = {"arrival": ("sequential", "closed"), "think": ("0s",), "acquire": ("create",)}
"""Identity that no column shows; a row where it is something else says so among its flags."""

COMPARABLE: Final = ("tier", "actions", "mode", "concurrency", "tier_digest", *USUAL, "cpu_milli", "memory_mib")
"""Rows are ranked against each other where these are equal: the same work, asked for in the same way."""


class Rank(NamedTuple):
    """The best and the worst place that the intervals of the medians allow; a tie where they differ."""

    best: int
    worst: int


class Tax(NamedTuple):
    """Per successful trial, in ns: all that workers were held for, think time apart, beyond the commands' own time."""

    total: Interval
    share: float  # of held
    causes: dict[str, float]  # what it consists of, by the names of ``measures.Causes``


class Row:
    """One cell. A statistic is computed when it is first asked for."""

    def __init__(self, cell: Pool) -> None:
        """A row that stands alone; ``rows_of`` puts it among others."""
        self.cell = cell
        self.good = cell.successes
        self.identity = cell.identity
        self.stand_in = cell.provenance == STAND_IN
        self.own_label = clean(f"STAND-IN {cell.identity.label}" if self.stand_in else cell.identity.label)
        self.label = self.own_label  # numbered where others would look the same
        self.flags = _flags(cell, self.good)
        self.peers: list[Row] = [self]
        self._summaries: dict[str, DurationSummary | None] = {}

    @property
    def details(self) -> str:
        """Tier, actions, mode, concurrency."""
        identity = self.identity
        return clean(f"{identity.tier} {identity.actions:,} {identity.mode} c{identity.concurrency}")

    @property
    def comparable(self) -> tuple[Any, ...]:
        """Equal for rows that may be ranked; what imitates a provider is never ranked with what was measured."""
        return (*(getattr(self.identity, field) for field in COMPARABLE), self.cell.provenance)

    @cached_property
    def failures(self) -> Interval:
        """The share of trials that failed or timed out, with Wilson's interval."""
        return wilson(self.failed, len(self.cell.trials))

    @property
    def failed(self) -> int:
        """How many trials failed or timed out."""
        return len(self.cell.trials) - len(self.good)

    @cached_property
    def held_ns(self) -> float | None:
        """All that workers were held for, per successful trial."""
        return self._per_success(sum(trial.measures.held_ns for trial in self.cell.trials))

    @cached_property
    def work_ns(self) -> float | None:
        """The commands' own time in the sandbox, per successful trial; None where it is not known of all."""
        known = all(trial.measures.known for trial in self.good)
        return self._per_success(sum(trial.measures.work_ns for trial in self.good)) if known else None

    @cached_property
    def tax(self) -> Tax | None:
        """None where nothing succeeded, or the commands' own time is not known of all."""
        trials, held, work = self.cell.trials, self.held_ns, self.work_ns
        if not held or work is None:
            return None
        taxes = [trial.measures.tax_ns(ok=trial.ok) for trial in trials]
        clusters = clusters_of([(trial.run_id, trial.block) for trial in trials])
        total = ratio_interval(taxes, [trial.ok for trial in trials], clusters)
        sums = Causes(*map(sum, zip(*(trial.measures.causes(ok=trial.ok) for trial in trials), strict=True)))
        causes = {cause: self._per_success(getattr(sums, f"{cause}_ns")) or 0.0 for cause in TAXES}
        return Tax(not_negative(total), total.value / held, causes)

    def summary(self, name: str) -> DurationSummary | None:
        """Of one of the cell's columns; None where it holds nothing."""
        if name not in self._summaries:
            origins = [(trial.run_id, trial.block) for trial in self.good]
            self._summaries[name] = summarize(column(self.good, name), origins)
        return self._summaries[name]

    def mean_ns(self, name: str) -> float | None:
        """Of one of the cell's columns; None where it holds nothing."""
        summary = self.summary(name)
        return summary.mean.value if summary else None

    def rank(self, name: str) -> Rank | None:
        """Among its peers, the smallest median first; None where there is none to compare with."""
        own = self.summary(name)
        rivals = [rival for row in self.peers if row is not self and (rival := row.summary(name))]
        if own is None or not rivals:
            return None
        faster = sum(_surely_below(rival.p50, own.p50) for rival in rivals)
        slower = sum(_surely_below(own.p50, rival.p50) for rival in rivals)
        return Rank(1 + faster, 1 + len(rivals) - slower)

    def _per_success(self, total_ns: int) -> float | None:
        return total_ns / len(self.good) if self.good else None


def rows_of(cells: Sequence[Pool]) -> list[Row]:
    """The rows of all cells with a counted trial; those that may be ranked stand together."""
    rows = sorted((Row(cell) for cell in cells if cell.trials), key=lambda row: row.comparable)
    for _, group in groupby(rows, lambda row: row.comparable):
        peers = list(group)
        differs = len({peer.identity.environment for peer in peers}) > 1
        for row in peers:
            row.peers = peers
            row.flags += [flags.ENVIRONMENT] * differs
    return rows


def namesakes(rows: Sequence[Row]) -> dict[str, str]:
    """Number the rows that would look the same; numbered label → what of its identity the others differ in."""
    found = {}
    names = [(row.own_label, row.details) for row in rows]
    for name in dict.fromkeys(names):
        same = [row for row, own in zip(rows, names, strict=True) if own == name]
        fields = [field for field in CellIdentity._fields if len({getattr(row.identity, field) for row in same}) > 1]
        for number, row in enumerate(same if fields else (), 1):
            row.label = f"{row.own_label} #{number}"
            differing = (f"{field} {clean(str(getattr(row.identity, field)))}" for field in fields)
            found[f"{row.label} {row.details}"] = ", ".join(differing)
    return found


def _flags(cell: Pool, good: Sequence[RecordedTrial]) -> list[str]:
    doubts = {
        flags.STAND_IN: cell.provenance == STAND_IN,
        flags.DISTORTED: cell.distorted,
        flags.INCOMPLETE: not cell.complete,
        flags.NO_SUCCESS: not good,
        flags.RUN_UNKNOWN: not all(trial.measures.known for trial in good),
        PRELOADED: cell.preload == "trial",
    }
    identity = cell.identity._asdict()
    unusual = [f"{field} {clean(identity[field])}" for field, usual in USUAL.items() if identity[field] not in usual]
    return [flag for flag, holds in doubts.items() if holds] + unusual


def _surely_below(one: Percentile, other: Percentile) -> bool:
    return one.high is not None and other.low is not None and one.high < other.low
