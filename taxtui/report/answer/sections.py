"""Tables of an answer: a line per workload and a column per substrate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from costmodel import CANNOT_TELL, NS_PER_S, TIE, Answer, Entry, Finding, Interval, Place, Row, ranking
from taxtui.report import variation
from taxtui.report.bars import chart, workload_of
from taxtui.report.cells import CellGroup, Content, TableCell
from taxtui.report.formats import Section
from taxtui.report.headline import sentence
from taxtui.report.marks import FlagMarks
from taxtui.report.numbers import NOTHING, NS, TIMES, duration
from taxtui.report.words import DO, INCONCLUSIVE, NO_DIFFERENCE, UNDECIDED
from taxtui.terminal_text import clean, cut
from taxtui.terminal_text import width as width_of

HEAD: Final = "tier n mode"
LONGEST: Final = 60
"""Maximum columns of a name in the sentence."""


def headline_text(answer: Answer) -> str:
    """Return the headline for a terminal; very long names are cut."""
    text = clean(f"{sentence(answer)}{_model_time(answer)}")
    names = {*(place.name for place in answer.places), *(line.work.tier for line in answer.lines)}
    for name in sorted(map(clean, names), key=len, reverse=True):
        if width_of(name) > LONGEST:
            text = text.replace(name, cut(name, LONGEST))
    return text


def _model_time(answer: Answer) -> str:
    """Return the sentence about the model's time; "" if no trajectory succeeded."""
    line = workload_of(answer)
    rows = [entry.row for entry in line.entries if entry.amount is not None] if line is not None else []
    times = sorted({row.think_s for row in rows if row.think_s is not None})
    if not times:  # published latencies: unknown
        return ""
    if not times[-1]:
        return " The model's time is not included."
    limits = dict.fromkeys(duration(time_s * NS_PER_S) for time_s in (times[0], times[-1]))
    return f" The model's time is included: {' to '.join(limits)} per trajectory."


def sections(answer: Answer, question: str, *, full: bool = False) -> list[Section]:
    """Return the headline, the bars by cause and the ranking.

    Args:
        answer: the ranking.
        question: the training run, as the beginning of the ranking's heading; may be empty.
        full: add the ratios of ``exec`` to ``session``.
    """
    tables = [Section("", [], [], [headline_text(answer)]), *bars(answer), main(answer, question)]
    return [*tables, *modes(answer)] if full else tables


def bars(answer: Answer) -> list[Section]:
    """Return the causes of the headline's workload as bars; nothing without known causes."""
    drawn = chart(answer)
    return [] if drawn is None else [Section("", [], [], [], drawn)]


def main(answer: Answer, question: str, *, brief: bool = False) -> Section:
    """Return the table of amounts and ratios with its notes; ``brief``: names of warnings only."""
    marks = FlagMarks([entry.row.flags for line in answer.lines for entry in line.entries], DO)
    unit = (
        "worker-hours"
        if answer.measure == ranking.WORKER_HOURS
        else "Time that one delivered trajectory occupies a worker"
    )
    heading = f"{question}: {unit}" if question else unit
    if any(line.reference for line in answer.lines):
        heading += f", and how many times {clean(answer.baseline) if answer.baseline else 'the cheapest'}"
    lines: list[list[Content]] = []
    for line in answer.lines:
        amounts = {entry.place: _amounts(entry, answer.measure) for entry in line.entries}
        name = f"{clean(line.name)}{_letters(line.entries, marks)}"
        lines.append([name, *(amounts.get(place, NOTHING) for place in answer.places)])
    head = [HEAD, *map(_heading, answer.places)]
    names = ["time" if answer.measure == ranking.HELD_PER_SUCCESS else "worker-hours", "ratio"]
    return Section(heading, head, lines, _short_notes(answer, marks) if brief else notes(answer, marks), amounts=names)


def modes(answer: Answer) -> list[Section]:
    """Return the table of ``exec`` against ``session``; nothing without a workload in both modes."""
    if not answer.modes:
        return []
    ratios = {(mode.name, mode.place): CellGroup((_ratio(mode.ratio, mode.verdict),)) for mode in answer.modes}
    places = [place for place in answer.places if any(mode.place == place for mode in answer.modes)]
    names = dict.fromkeys(mode.name for mode in answer.modes)
    lines: list[list[Content]] = [
        [clean(name), *(ratios.get((name, place), NOTHING) for place in places)] for name in names
    ]
    return [Section("How many times as long exec takes as session", ["tier n", *map(_heading, places)], lines, [])]


def notes(answer: Answer, marks: FlagMarks) -> list[str]:
    """Return the notes: intervals, verdicts, unranked columns and warnings."""
    rows = [entry.row for line in answer.lines for entry in line.entries]
    basis = variation.in_words(row.evidence.basis for row in rows if row.evidence)
    lines = (
        [f"±: {basis[0].lower() + basis[1:]}" if basis and not basis[0].isdigit() else f"±: {basis}"] if basis else []
    )
    lines += _at_least(entry.row for line in answer.lines for entry in line.entries)
    lines += _verdicts(answer)
    if answer.unranked:
        names = ", ".join(f"{clean(place.name)} ({clean(place.provenance)})" for place in answer.unranked)
        lines.append(f"Not compared with {answer.ground.replace('_', '-')} rows: {names}.")
    lines += [f"{clean(place.name)}: {clean(place.differs)}" for place in answer.places if place.differs]
    if any(entry.another_environment for line in answer.lines for entry in line.entries):
        lines.append("The rows are from several machines, regions or kernels.")
    return [*lines, *marks.notes()]


def _at_least(rows: Iterable[Row]) -> list[str]:
    """Return the concurrency to measure for each row with a lower limit only."""
    missing: dict[tuple[int, int], None] = {}
    for row in rows:
        hours, levels = row.worker_hours, row.levels
        if levels is not None and hours is not None and hours.at_least:
            missing[levels.levels[-1][0], levels.at_a_time] = None
    return [
        f"≥: at least, measured with {measured:,} at a time; {shared:,} share a host here: measure --concurrency "
        f"{shared}, or give nodes and pods_per_node."
        for measured, shared in missing
    ]


def _short_notes(answer: Answer, marks: FlagMarks) -> list[str]:
    lines = [f"All: {', '.join(marks.shared)}."] if marks.shared else []
    return [*_verdicts(answer), *lines, *marks.brief()]


def _verdicts(answer: Answer) -> list[str]:
    """Return the notes about the verdicts beside ratios."""
    verdicts = [entry.verdict for line in answer.lines for entry in line.entries if entry.verdict]
    verdicts += [item.verdict for item in answer.modes]
    tie = any(item.kind == TIE for item in verdicts)
    lines = [f"{NO_DIFFERENCE}: the interval of the difference includes 0."] * tie
    lines += dict.fromkeys(
        f"{INCONCLUSIVE} {item.reason}: more than varies within a repetition, less than repetitions may differ by."
        for item in verdicts
        if item.kind == CANNOT_TELL
    )
    return lines


def _amounts(entry: Entry, measure: str) -> Content:
    """``855 ±121  3.48x ±0.12``."""
    if entry.amount is None:
        return NOTHING
    ratio = [] if entry.ratio is None else [_ratio(entry.ratio, entry.verdict)]
    return CellGroup((amount_cell(entry.amount, measure), *ratio))


def amount_cell(amount: Interval, measure: str) -> TableCell:
    """Return an amount in worker-hours, or as a duration."""
    value, low, high = amount if measure == ranking.WORKER_HOURS else amount.times(NS_PER_S)
    return TableCell(value, "" if measure == ranking.WORKER_HOURS else NS, low, high)


def _ratio(ratio: Interval, verdict: Finding | None) -> TableCell:
    """``4.31x ±0.26 no difference``."""
    return TableCell(ratio.value, TIMES, ratio.low, ratio.high, UNDECIDED.get(verdict.kind if verdict else "", ""))


def _letters(entries: Sequence[Entry], marks: FlagMarks) -> str:
    result = dict.fromkeys(letter for entry in entries for letter in marks.of(entry.row.flags))
    return f" [{''.join(result)}]" if result else ""


def _heading(place: Place) -> str:
    name = clean(place.name)
    return name if place.provenance == "measured" else f"{name}\n{clean(place.provenance).replace('_', '-')}"
