"""The output of ``taxtui compare``: a table with the worst change first, plain data, and JUnit XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from costmodel import (
    COMPARISON_VERDICTS,
    FAILURE_RATE,
    INCONCLUSIVE,
    POWER,
    WORSE,
    ComparedSide,
    Comparison,
    Comparisons,
    Interval,
    Pool,
    Recording,
)
from taxtui.report import variation
from taxtui.report.cells import CellGroup, Content, TableCell, amount_cell
from taxtui.report.formats import Report, Section
from taxtui.report.measured.rows import MeasuredRow, namesakes
from taxtui.report.measured.sections import HEAD, marks_of, name_of
from taxtui.report.numbers import COUNT, NS, SHARE, percent, plus_minus
from taxtui.terminal_text import clean

DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>'
_NO_CHARACTERS: Final = re.compile("[\ufffe\uffff]")
"""Characters that are invalid in XML and not removed by ``clean``."""

ONE_IN: Final = 40
"""Without a real change, at most one comparison in this number is worse by chance (2.5 %)."""
_LEGEND: Final = (
    "worse, better: the interval of the change is on one side of 0. no difference: the interval is within ± the limit. "
    f"inconclusive: neither. needs: repetitions a side that show a change of the limit in {POWER:.0%} of cases. "
    "failure_rate: limit and change are in percentage points; without a failed trial in AFTER the rate is never "
    "inconclusive; where repetitions are too few to show how failures come together, at most 20 trials of each count."
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
        return Report(lambda: [self.section()], lambda: [_record(comparison) for comparison in self.result.comparisons])

    def summary(self, *, beyond: bool | None) -> str:
        """Return ``2 of 24 comparisons …`` with the first three that are beyond their limit, or unknown."""
        listed = [comparison for comparison in self.ordered if comparison.beyond is beyond]
        texts = [
            f"{cell_name(comparison.after)} {comparison.metric.name} {self.in_words(comparison)}"
            for comparison in listed
        ]
        more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
        meaning = "got worse by more than the limit" if beyond else "are inconclusive about the limit"
        return f"{len(listed)} of {len(self.ordered)} comparisons {meaning}: {'; '.join(texts[:3])}{more}"

    def in_words(self, comparison: Comparison) -> str:
        """Return ``+23 % (+12 – +34), limit 10 %``, or the reason for a missing interval."""
        change = comparison.change
        if change is None:
            return comparison.reason
        end = comparison.reason if change.low is None else f"limit {_limit(comparison)}"
        text = plus_minus(change, unit=SHARE, signed=True)
        return f"{text.replace('%', 'points') if comparison.metric.name == FAILURE_RATE else text}, {end}"

    def section(self) -> Section:
        marks = marks_of(list(self.rows.values()))
        lines: list[list[Content]] = [
            [
                name_of(self.rows[comparison.after], marks, self._flags(comparison)),
                f"{comparison.metric.name}\n± {_limit(comparison)}",
                _stacked(*(TableCell(side.values, COUNT) for side in (comparison.then, comparison.now))),
                _stacked(*(_at(comparison, side) for side in (comparison.then, comparison.now))),
                amount_cell(comparison.change, SHARE, signed=True),
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
                reasons.setdefault(comparison.reason, []).append(
                    f"{cell_name(comparison.after)} {comparison.metric.name}"
                )
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


def _limit(comparison: Comparison) -> str:
    """Return ``10 %``, or ``1 points``: percentage points, of a failure rate."""
    limit = comparison.metric.limit
    return f"{100 * limit:g} points" if comparison.metric.name == FAILURE_RATE else percent(limit)


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


def _stacked(*cells: TableCell) -> CellGroup:
    return CellGroup(cells, below=True)


def _at(comparison: Comparison, side: ComparedSide) -> TableCell:
    unit = SHARE if comparison.metric.name == FAILURE_RATE else NS
    return TableCell() if side.at is None else TableCell(side.at.value, unit)


def _record(comparison: Comparison) -> dict[str, Any]:
    """Return one comparison; durations in ns, null if unknown."""
    identity = comparison.after.identity
    unit = "share" if comparison.metric.name == FAILURE_RATE else "ns"

    def side(pool: Pool, compared: ComparedSide) -> dict[str, Any]:
        return {
            "substrate": pool.identity.label,
            "recordings": pool.sources,
            "n": compared.values,
            unit: _limits(compared.at),
        }

    return {
        "cell_id": identity.cell_id,
        **identity._asdict(),
        "provenance": comparison.after.provenance,
        "metric": comparison.metric.name,
        "limit": comparison.metric.limit,
        "before": side(comparison.before, comparison.then),
        "after": side(comparison.after, comparison.now),
        "change": _limits(comparison.change),
        "runs": [basis._asdict() for basis in comparison.bases],
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "beyond_limit": comparison.beyond,
        "needs_repetitions": comparison.needs,
    }


def _limits(interval: Interval | None) -> dict[str, float | None]:
    return dict.fromkeys(Interval._fields) if interval is None else interval._asdict()


def junit_xml(table: ComparisonTable) -> str:
    """Return JUnit XML: a suite per cell, a case per metric. A failure is beyond its limit; unknown is skipped."""
    root = Element("testsuites", name="taxtui compare")
    for cell, group in groupby(table.result.comparisons, lambda comparison: cell_name(comparison.after)):
        _suite(root, cell, list(group), table)
    for pools, side in ((table.result.only_before, "before"), (table.result.only_after, "after")):
        for pool in pools:
            suite = SubElement(root, "testsuite", name=_text(cell_name(pool)), tests="1", failures="0", skipped="1")
            case = SubElement(suite, "testcase", classname=_text(cell_name(pool)), name="the cell")
            SubElement(case, "skipped", message=f"only {side}, so not compared")
    indent(root)
    return f"{DECLARATION}\n{tostring(root, encoding='unicode')}\n"


def _suite(root: Element, cell: str, comparisons: list[Comparison], table: ComparisonTable) -> None:
    states = [comparison.beyond for comparison in comparisons]
    counts = {"tests": len(states), "failures": states.count(True), "skipped": states.count(None)}
    suite = SubElement(root, "testsuite", {"name": _text(cell), **{name: str(n) for name, n in counts.items()}})
    for comparison, beyond in zip(comparisons, states, strict=True):
        case = SubElement(suite, "testcase", classname=_text(cell), name=_text(comparison.metric.name))
        message = table.in_words(comparison)
        if beyond:
            SubElement(case, "failure", message=_text(message), type=WORSE)
        elif beyond is None:
            reason = f"{comparison.reason}; " if comparison.reason else ""
            SubElement(case, "skipped", message=_text(f"{comparison.verdict}: {reason}{message}"))


def _text(text: str) -> str:
    return _NO_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", clean(text))
