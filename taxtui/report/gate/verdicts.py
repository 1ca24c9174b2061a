"""A gate's comparisons as a table, the worst first, and as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from costmodel.analysis.regression import FAILURE_RATE, PASSED, REGRESSED, TOO_LITTLE, Comparison, Gate, GateSide
from costmodel.recording.reader import Recording
from costmodel.statistics.intervals import Interval
from costmodel.workload.pool import Pool
from taxtui.report import variation
from taxtui.report.cells import Content
from taxtui.report.formats import Report, Section
from taxtui.report.measured.rows import Row, namesakes
from taxtui.report.measured.tables import HEAD, marks_of, name_of
from taxtui.report.numbers import NOTHING, duration
from taxtui.terminal_text import clean

_WORST: Final = (REGRESSED, TOO_LITTLE, PASSED)
"""Every verdict, the worst first."""

_HOW_TO_READ: Final = (
    "worse: the whole interval of the change is beyond the limit. no difference: the whole interval is within the "
    "limit. inconclusive: the interval contains the limit, or there are too few data for one. failure_rate: its limit "
    "is in points; where no trial failed there is no difference."
)


class Verdicts:
    """What a gate found, in words; every text about it has them from here."""

    def __init__(self, gate: Gate, before: Sequence[Recording], after: Sequence[Recording]) -> None:
        """``before`` and ``after`` are what was compared."""
        self.gate = gate
        self.sides = {"before": before, "after": after}
        pools = dict.fromkeys(one.after for one in gate.comparisons)
        self.rows = {pool: Row(pool) for pool in pools}
        self.differing = namesakes(list(self.rows.values()))
        self.ordered = sorted(gate.comparisons, key=lambda one: _WORST.index(one.verdict))
        self.counts = Counter(one.verdict for one in gate.comparisons)

    @property
    def report(self) -> Report:
        """For the formats."""
        return Report(lambda: [self.section()], lambda: [_record(one) for one in self.gate.comparisons])

    def name(self, one: Comparison) -> str:
        """Its cell, on one line."""
        row = self.rows[one.after]
        return f"{row.label} {row.details}"

    def summary(self, verdict: str) -> str:
        """``2 of 24 comparisons …``, and which ones, the first few of them."""
        found = [one for one in self.ordered if one.verdict == verdict]
        which = [f"{self.name(one)} {one.metric.name} {self.in_words(one)}" for one in found]
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        return f"{len(found)} of {len(self.ordered)} comparisons {_MEANING[verdict]}: {'; '.join(which[:3])}{more}"

    def in_words(self, one: Comparison) -> str:
        """``+23.1 % (+12.0 … +34.5), limit +10 %``, or why that cannot be told."""
        if one.change is None:
            return one.reason
        value, _, limits = _change(one).partition("\n")
        return f"{value} ({limits}), limit {_limit(one)}" if limits else f"{value}, {one.reason}"

    def section(self) -> Section:
        """The whole table."""
        marks = marks_of(list(self.rows.values()))
        names = {pool: name_of(row, marks, row.flags) for pool, row in self.rows.items()}
        lines: list[list[Content]] = [
            [
                names[one.after],
                f"{one.metric.name}\n≤ {_limit(one)}",
                f"{one.then.values:,}\n{one.now.values:,}",
                f"{_at(one, one.then)}\n{_at(one, one.now)}",
                _change(one),
                one.verdict,
            ]
            for one in self.ordered
        ]
        told = ", ".join(f"{self.counts[verdict]} {verdict}" for verdict in _WORST)
        head = [HEAD, "metric\nlimit", "n before\nn after", "before\nafter", "change\n", "verdict\n"]
        return Section(f"{len(self.ordered)} comparisons: {told}", head, lines, [*self._notes(), *marks.notes()])

    def _notes(self) -> list[str]:
        names = [f"{side}: {', '.join(clean(one.name) for one in of)}." for side, of in self.sides.items()]
        spread = variation.in_words(basis for one in self.gate.comparisons for basis in one.bases)
        notes = [" ".join(names), *([spread] if spread else []), _HOW_TO_READ]
        notes += [f"{name}: {what}" for name, what in self.differing.items()]
        reasons: dict[str, list[str]] = {}
        for one in self.ordered:
            if one.verdict == TOO_LITTLE:
                reasons.setdefault(one.reason, []).append(f"{self.name(one)} {one.metric.name}")
        notes += [f"{reason}: {_few(which)}." for reason, which in reasons.items()]
        if self.gate.differing:
            fields = ", ".join(field.replace("_", " ") for field in self.gate.differing)
            notes.append(f"Not the same on both sides: {fields}.")
        for pools, where in ((self.gate.only_before, "before"), (self.gate.only_after, "after")):
            notes += [f"Only {where}, so not compared: {', '.join(map(unpaired, pools))}."] if pools else []
        return notes


_MEANING: Final = {
    REGRESSED: "got worse by more than the limit",
    TOO_LITTLE: "are inconclusive",
    PASSED: "show no difference beyond the limit",
}


def unpaired(pool: Pool) -> str:
    """A cell that one side alone holds."""
    row = Row(pool)
    return f"{row.label} {row.details}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"{'; '.join(names[:4])}{more}"


def _at(one: Comparison, side: GateSide) -> str:
    if side.at is None:
        return NOTHING
    return f"{100 * side.at.value:.3g} %" if one.metric.name == FAILURE_RATE else duration(side.at.value)


def _unit(one: Comparison) -> str:
    return "points" if one.metric.name == FAILURE_RATE else "%"


def _limit(one: Comparison) -> str:
    return f"+{100 * one.metric.limit:g} {_unit(one)}"


def _change(one: Comparison) -> str:
    if one.change is None:
        return NOTHING
    value, low, high = (None if end is None else f"{100 * end:+.1f}" for end in one.change)
    limits = "" if low is None else f"{low} …" if high is None else f"{low} … {high}"
    return f"{value} {_unit(one)}\n{limits}"


def _record(one: Comparison) -> dict[str, Any]:
    """A comparison: durations in ns, shares as shares; null where it is not known."""
    identity = one.after.identity
    unit = "share" if one.metric.name == FAILURE_RATE else "ns"

    def side(found: GateSide) -> dict[str, Any]:
        return {"n": found.values, unit: _limits(found.at)}

    return {
        "cell_id": identity.cell_id,
        **identity._asdict(),
        "provenance": one.after.provenance,
        "metric": one.metric.name,
        "limit": one.metric.limit,
        "before": {"recordings": one.before.sources, **side(one.then)},
        "after": {"recordings": one.after.sources, **side(one.now)},
        "change": _limits(one.change),
        "runs": [basis._asdict() for basis in one.bases],
        "verdict": one.verdict,
        "reason": one.reason,
    }


def _limits(found: Interval | None) -> dict[str, float | None]:
    return dict.fromkeys(Interval._fields) if found is None else found._asdict()
