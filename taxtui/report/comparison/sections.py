"""Table and notes of a comparison, the worst change first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from costmodel import (
    COMPARISON_VERDICTS,
    FAILURE_RATE,
    INCONCLUSIVE,
    POWER,
    ComparedSide,
    Comparison,
    Comparisons,
    Pool,
    Recording,
)
from taxtui.report import variation
from taxtui.report.cells import Content
from taxtui.report.comparison.record import record
from taxtui.report.formats import Report, Section
from taxtui.report.measured.rows import MeasuredRow, namesakes
from taxtui.report.measured.sections import HEAD, marks_of, name_of
from taxtui.report.numbers import NOTHING, duration
from taxtui.terminal_text import clean

ONE_IN: Final = 40
"""Without a real change, at most one comparison in this number is worse by chance (2.5 %)."""
_LEGEND: Final = (
    "worse, better: the interval of the change is on one side of 0. no difference: the interval is within ± the limit. "
    f"inconclusive: neither. needs: repetitions a side that show a change of the limit in {POWER:.0%} of cases. "
    "failure_rate: the limit is in points; without a failed trial in AFTER the rate is never inconclusive."
)


class ComparisonTable:
    """Texts about a comparison."""

    def __init__(self, result: Comparisons, before: Sequence[Recording], after: Sequence[Recording]) -> None:
        self.result = result
        self.sides = {"before": before, "after": after}
        pools = dict.fromkeys(
            pool for comparison in result.comparisons for pool in (comparison.after, comparison.before)
        )
        self.rows = {pool: MeasuredRow(pool) for pool in pools}
        self.differing = namesakes(
            [self.rows[pool] for pool in dict.fromkeys(comparison.after for comparison in result.comparisons)]
        )
        self.ordered = sorted(result.comparisons, key=lambda comparison: COMPARISON_VERDICTS.index(comparison.verdict))
        self.counts = Counter(comparison.verdict for comparison in result.comparisons)

    @property
    def report(self) -> Report:
        return Report(lambda: [self.section()], lambda: [record(comparison) for comparison in self.result.comparisons])

    def name(self, comparison: Comparison) -> str:
        """Return the name of the cell on one line, with the label before if changed."""
        row, before = self.rows[comparison.after], self.rows[comparison.before]
        return f"{'' if before.own_label == row.own_label else f'{before.own_label} → '}{row.label} {row.details}"

    def summary(self, *, beyond: bool | None) -> str:
        """Return ``2 of 24 comparisons …`` with the first three that are beyond their limit, or unknown."""
        listed = [comparison for comparison in self.ordered if comparison.beyond is beyond]
        texts = [
            f"{self.name(comparison)} {comparison.metric.name} {self.in_words(comparison)}" for comparison in listed
        ]
        more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
        meaning = "got worse by more than the limit" if beyond else "are inconclusive about the limit"
        return f"{len(listed)} of {len(self.ordered)} comparisons {meaning}: {'; '.join(texts[:3])}{more}"

    def in_words(self, comparison: Comparison) -> str:
        """Return ``+23.1 % (+12.0 … +34.5), limit +10 %``, or the reason for a missing interval."""
        if comparison.change is None:
            return comparison.reason
        value, _, limits = _change(comparison).partition("\n")
        return f"{value} ({limits}), limit +{_limit(comparison)}" if limits else f"{value}, {comparison.reason}"

    def section(self) -> Section:
        marks = marks_of(list(self.rows.values()))
        lines: list[list[Content]] = [
            [
                name_of(self.rows[comparison.after], marks, self._flags(comparison)),
                f"{comparison.metric.name}\n± {_limit(comparison)}",
                f"{comparison.then.values:,}\n{comparison.now.values:,}",
                f"{_at(comparison, comparison.then)}\n{_at(comparison, comparison.now)}",
                _change(comparison),
                f"{comparison.verdict}\n{'' if comparison.needs is None else f'needs {comparison.needs}'}".rstrip("\n"),
            ]
            for comparison in self.ordered
            if not _without_failures(comparison)
        ]
        counts = ", ".join(f"{self.counts[verdict]} {verdict}" for verdict in COMPARISON_VERDICTS)
        head = [HEAD, "metric\nlimit", "n before\nn after", "before\nafter", "change\n", "verdict\n"]
        return Section(f"{len(self.ordered)} comparisons: {counts}", head, lines, [*self._notes(), *marks.notes()])

    def _flags(self, comparison: Comparison) -> list[str]:
        return list(dict.fromkeys([*self.rows[comparison.after].flags, *self.rows[comparison.before].flags]))

    def _notes(self) -> list[str]:
        names = [f"{side}: {', '.join(clean(file.name) for file in files)}." for side, files in self.sides.items()]
        spread = variation.in_words(basis for comparison in self.result.comparisons for basis in comparison.bases)
        notes = [" ".join(names), *([spread] if spread else []), _LEGEND]
        notes += [f"{name}: {fields}" for name, fields in self.differing.items()]
        reasons: dict[str, list[str]] = {}
        for comparison in self.ordered:
            if comparison.verdict == INCONCLUSIVE and comparison.needs is None:
                reasons.setdefault(comparison.reason, []).append(f"{self.name(comparison)} {comparison.metric.name}")
        notes += [f"{reason}: {_few(cells)}." for reason, cells in reasons.items()]
        if quiet := sum(map(_without_failures, self.ordered)):
            notes.append(f"failure_rate: cells without a failed trial on either side are not listed ({quiet}).")
        if (by_chance := len(self.ordered) // ONE_IN) > 0:
            notes.append(f"Without a real change, {by_chance} of these comparisons may be worse by chance.")
        if not_counted := sum(comparison.by_chance for comparison in self.ordered):
            notes.append(f"--fail-above does not count {not_counted} worse metrics: chance may explain them.")
        if self.result.differing:
            differences = ", ".join(field.replace("_", " ") for field in self.result.differing)
            notes.append(f"Different on the two sides: {differences}.")
        return [*notes, *self.unpaired()]

    def unpaired(self) -> list[str]:
        """Return a note about the unpaired cells of each side."""
        sides = ("before", self.result.only_before), ("after", self.result.only_after)
        return [
            f"Only {side}, so not compared: {_few([cell_name(pool) for pool in pools])}."
            for side, pools in sides
            if pools
        ]


def _without_failures(comparison: Comparison) -> bool:
    """Return whether a comparison is the failure rate of a cell without a failed trial."""
    sides = comparison.then.at, comparison.now.at
    return comparison.metric.name == FAILURE_RATE and all(side is not None and not side.value for side in sides)


def cell_name(pool: Pool) -> str:
    """Return the name of a cell, on one line."""
    row = MeasuredRow(pool)
    return f"{row.label} {row.details}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"{'; '.join(names[:4])}{more}"


def _at(comparison: Comparison, side: ComparedSide) -> str:
    if side.at is None:
        return NOTHING
    return f"{100 * side.at.value:.3g} %" if comparison.metric.name == FAILURE_RATE else duration(side.at.value)


def _unit(comparison: Comparison) -> str:
    return "points" if comparison.metric.name == FAILURE_RATE else "%"


def _limit(comparison: Comparison) -> str:
    return f"{100 * comparison.metric.limit:g} {_unit(comparison)}"


def _change(comparison: Comparison) -> str:
    if comparison.change is None:
        return NOTHING
    value, low, high = (None if end is None else f"{100 * end:+.1f}" for end in comparison.change)
    limits = "" if low is None else f"{low} …" if high is None else f"{low} … {high}"
    return f"{value} {_unit(comparison)}\n{limits}"
