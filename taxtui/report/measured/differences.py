"""What changed from one recording to another: the durations of cells that did the same work, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from costmodel.statistics.intervals import Interval, difference
from costmodel.statistics.quantiles import Percentile
from costmodel.statistics.repetitions import Assumed
from costmodel.statistics.verdict import Difference, across, judge
from taxtui.report import variation
from taxtui.report.cells import NS, Content, RowName, TableCell
from taxtui.report.formats import Section
from taxtui.report.marks import FlagMarks
from taxtui.report.measured.rows import Row
from taxtui.report.measured.tables import DO, HEAD, LATENCIES, PARTS, RESPONSE, name_of, percentile
from taxtui.report.numbers import NOTHING, duration
from taxtui.report.words import UNDECIDED

_HOW_TO_READ: Final = (
    "Below each value its interval; that of a change is recovered from the two (Zou and Donner 2008). tie: it spans 0. "
    "?: more than varies within the runs, less than runs differ: so few cannot tell. What one recording alone holds is "
    "not shown."
)


class Pair(NamedTuple):
    """The same work in two recordings."""

    before: Row
    after: Row


def pairs(before: Sequence[Row], after: Sequence[Row]) -> list[Pair]:
    """Rows of one substrate and variant that did the same work; what then is left over, across substrates."""
    then = {(row.comparable, row.identity.label): row for row in before}
    now = {(row.comparable, row.identity.label) for row in after}
    left_over = {row.comparable: row for key, row in then.items() if key not in now}
    found = []
    for row in after:
        other = then.get((row.comparable, row.identity.label)) or left_over.get(row.comparable)
        found += [Pair(other, row)] if other else []
    return found


def sections(found: Sequence[Pair], tables: Sequence[str], before: str, after: str) -> list[Section]:
    """The tables asked for, as differences; ``before`` and ``after`` name the recordings."""
    marks = FlagMarks([_flags(pair) for pair in found], DO)
    names = {pair: _name(pair, marks) for pair in found}
    shown = []
    for table in tables:
        if table == "breakdown":
            shown.append(_breakdown(names))
        elif table == "tax":
            shown.append(_tax(names))
        else:
            told = {
                pair: name for pair, name in names.items() if table != RESPONSE or all(row.scheduled for row in pair)
            }
            shown += [_latencies(title, name, told) for name, title in LATENCIES[table].items() if told]
    rests = variation.in_words(row.basis for pair in found for row in pair if row.basis)
    notes = [f"before: {before}. after: {after}.", *([rests] if rests else []), _HOW_TO_READ, *marks.notes()]
    return [*shown[:-1], *(section._replace(notes=section.notes + notes) for section in shown[-1:])]


def _flags(pair: Pair) -> list[str]:
    """Of either, those that could move it most first."""
    return list(
        dict.fromkeys(flag for both in zip_longest(pair.after.flags, pair.before.flags) for flag in both if flag)
    )


def _name(pair: Pair, marks: FlagMarks) -> RowName:
    name = name_of(pair.after, marks, _flags(pair))
    if pair.before.identity.label == pair.after.identity.label:
        return name
    return name._replace(details=f"{name.details}, was {pair.before.label}")


def _latencies(title: str, name: str, names: dict[Pair, RowName]) -> Section:
    head = [HEAD, "n before\nn after", "p50\nbefore", "p50\nafter", "change\n", "of the mean\n"]
    lines: list[list[Content]] = []
    for pair, named in names.items():
        before, after = pair.before.summary(name), pair.after.summary(name)
        counts = f"{before.n if before else 0:,}\n{after.n if after else 0:,}"
        if before is None or after is None:
            lines.append([named, counts, *[NOTHING] * 4])
            continue
        line: list[Content] = [named, counts, percentile(before.p50), percentile(after.p50)]
        assume = _assumed(pair)
        median = difference(_interval(after.p50), _interval(before.p50))
        within = difference(_interval(after.middle), _interval(before.middle))
        verdict = across(median, within, after.estimate, before.estimate, assume)
        lines.append(
            [*line, change(Difference(median, verdict)), change(judge(after.estimate, before.estimate, assume))]
        )
    return Section(title, head, lines, [])


def _assumed(pair: Pair) -> Assumed:
    """Of the runs of both: the larger spread."""
    return max(pair.before.assume, pair.after.assume)


def _interval(median: Percentile) -> Interval:
    return Interval(median.value or 0, median.low, median.high)


def _breakdown(names: dict[Pair, RowName]) -> Section:
    parts = {part: mean for part, mean in PARTS.items() if any(mean(row) for pair in names for row in pair)}
    lines: list[list[Content]] = []
    for pair, named in names.items():
        if pair.before.mean_ns("trajectory") is None or pair.after.mean_ns("trajectory") is None:
            lines.append([named, *[NOTHING] * len(parts)])
            continue
        means = [(mean(pair.before), mean(pair.after)) for mean in parts.values()]
        lines.append([named, *(f"{duration(after)}\n{signed(after - before)}" for before, after in means)])
    title = "Breakdown of completion: mean of each phase after, and what it changed by"
    return Section(title, [HEAD, *(f"{part}\n" for part in parts)], lines, [])


def _tax(names: dict[Pair, RowName]) -> Section:
    lines: list[list[Content]] = []
    for pair, named in names.items():
        before, after = pair.before.tax, pair.after.tax
        if before is None or after is None:
            lines.append([named, *[NOTHING] * 4])
            continue
        line: list[Content] = [
            named,
            duration(*before.total),
            duration(*after.total),
            change(judge(after.estimate, before.estimate, _assumed(pair))),
        ]
        lines.append([*line, f"{before.share:.1%}\n{after.share:.1%}"])
    head = [HEAD, "tax\nbefore", "tax\nafter", "change\n", "share before\nshare after"]
    return Section("Tax: per successful trial", head, lines, [])


def change(found: Difference) -> TableCell:
    """``+12.3 ms`` and, on a second line, ``±14.1 no difference``."""
    value, low, high = found.value
    return TableCell(value, NS, low, high, UNDECIDED.get(found.verdict.kind, ""), signed=True)


def signed(ns: float) -> str:
    """``+12.3 ms``."""
    return f"+{duration(ns)}" if ns > 0 else duration(ns)
