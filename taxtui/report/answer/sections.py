"""Tables of an answer: a line per workload and a column per substrate; then the tax and the dollars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from costmodel import (
    CANNOT_TELL,
    HELD_PER_SUCCESS,
    NS_PER_S,
    TIE,
    WORKER_HOURS,
    Answer,
    Entry,
    Finding,
    Interval,
    Place,
    Reference,
    Row,
    headline,
    sentence,
    warnings,
)
from taxtui.options.rows import BY_SUBSTRATE
from taxtui.report import variation
from taxtui.report.answer.order import tax_share
from taxtui.report.bars import chart
from taxtui.report.cells import DOLLARS, NS, SHARE, TIMES, CellGroup, Content, TableCell
from taxtui.report.formats import Section
from taxtui.report.marks import FlagMarks
from taxtui.report.numbers import NOTHING, UNSPLIT, duration
from taxtui.report.words import INCONCLUSIVE, NO_DIFFERENCE, UNDECIDED
from taxtui.terminal_text import clean, cut
from taxtui.terminal_text import width as width_of

HEAD: Final = "tier n mode"
LONGEST: Final = 60
"""Maximum columns of a name in the sentence."""
S_PER_HOUR: Final = 3_600.0

Pieces = Sequence[TableCell]
"""The amounts of one row at one substrate."""


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
    line = headline(answer) or next(iter(answer.lines), None)
    rows = [entry.row for entry in line.entries if entry.amount is not None] if line is not None else []
    times = sorted({row.think_s for row in rows if row.think_s is not None})
    if not times:  # published latencies: unknown
        return ""
    if not times[-1]:
        return " The model's time is not included."
    limits = dict.fromkeys(duration(time_s * NS_PER_S) for time_s in (times[0], times[-1]))
    return f" The model's time is included: {' to '.join(limits)} per trajectory."


def sections(
    answer: Answer,
    question: str,
    *,
    workers: int | None = None,
    by: str | None = None,
    reference: Reference | None = None,
) -> list[Section]:
    """Return the sentence, the bars by cause, the table, the tax and the dollars.

    Args:
        answer: the ranking.
        question: the training run, as the beginning of the table's heading; may be empty.
        workers: number of workers; the table of the tax then has the wall-clock.
        by: ``BY_SUBSTRATE`` for a line per substrate.
        reference: dispatch for the limits of an unknown tax.
    """
    entries = [entry for line in answer.lines for entry in line.entries]
    tables = [Section("", [], [], [headline_text(answer)]), *bars(answer), main(answer, question, by), *modes(answer)]
    taxed = any(entry.row.tax_worker_hours or entry.row.tax_between_worker_hours for entry in entries)
    parts = ["tax, as time and share"] * taxed
    parts += [] if workers is None else [f"wall-clock on {workers:,} worker{'s' * (workers != 1)}"]
    if parts:
        heading = "; ".join(parts)
        cells = partial(_tax_and_clock, measure=answer.measure, taxed=taxed, wall=workers is not None)
        table = _table(f"{heading[0].upper()}{heading[1:]}", answer, by, cells)
        names = [*["tax", "share"] * taxed, *["wall-clock"] * (workers is not None)]
        tables.append(table._replace(notes=_bounds(entries, reference), amounts=names))
    if any(entry.row.cost for entry in entries):
        dollars = _table("Dollars, and their part that is tax", answer, by, _dollars)
        tables.append(dollars._replace(notes=_sheets(answer), amounts=["dollars", "tax"]))
    return tables


def bars(answer: Answer) -> list[Section]:
    """Return the causes of the headline's workload as bars; nothing without known causes."""
    drawn = chart(answer)
    return [] if drawn is None else [Section("", [], [], [], drawn)]


def main(answer: Answer, question: str, by: str | None = None, *, brief: bool = False) -> Section:
    """Return the table of amounts and ratios with its notes; ``brief``: names of warnings only."""
    marks = FlagMarks([entry.row.flags for line in answer.lines for entry in line.entries], warnings.DO)
    unit = "worker-hours" if answer.measure == WORKER_HOURS else "Time that one delivered trajectory occupies a worker"
    heading = f"{question}: {unit}" if question else unit
    if any(line.reference for line in answer.lines):
        heading += f", and how many times {clean(answer.baseline) if answer.baseline else 'the cheapest'}"
    table = _table(heading, answer, by, lambda entry: _main(entry, answer), marks)
    names = ["time" if answer.measure == HELD_PER_SUCCESS else "worker-hours", "ratio"]
    return table._replace(notes=_short_notes(answer, marks) if brief else notes(answer, marks), amounts=names)


def modes(answer: Answer) -> list[Section]:
    """Return the table of ``exec`` against ``session``; nothing without a workload in both modes."""
    if not answer.modes:
        return []
    ratios = {(mode.name, mode.place): mode for mode in answer.modes}
    places = [place for place in answer.places if any(mode.place == place for mode in answer.modes)]
    names = list(dict.fromkeys(mode.name for mode in answer.modes))
    cells = [
        [
            CellGroup((_ratio(mode.ratio, mode.verdict),)) if (mode := ratios.get((name, place))) else NOTHING
            for place in places
        ]
        for name in names
    ]
    lines: list[list[Content]] = [[clean(name), *row] for name, row in zip(names, cells, strict=True)]
    return [Section("How many times longer exec runs than session", ["tier n", *map(_heading, places)], lines, [])]


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


def _main(entry: Entry, answer: Answer) -> Pieces:
    """``855 ±121  3.48x ±0.12``."""
    ratio = [] if entry.ratio is None else [_ratio(entry.ratio, entry.verdict)]
    return [] if entry.amount is None else [amount_cell(entry.amount, answer.measure), *ratio]


def amount_cell(amount: Interval, measure: str) -> TableCell:
    """Return an amount in worker-hours, or as a duration."""
    value, low, high = amount if measure == WORKER_HOURS else amount.times(NS_PER_S)
    return TableCell(value, "" if measure == WORKER_HOURS else NS, low, high)


def _ratio(ratio: Interval, verdict: Finding | None) -> TableCell:
    """``4.31x ±0.26 no difference``."""
    return TableCell(ratio.value, TIMES, ratio.low, ratio.high, UNDECIDED.get(verdict.kind if verdict else "", ""))


def _tax_and_clock(entry: Entry, *, measure: str, taxed: bool, wall: bool) -> Pieces:
    """``745  87 %  1.71 h``."""
    hours = entry.row.wall_clock_hours
    clock = TableCell() if hours is None else TableCell(hours.value * S_PER_HOUR * NS_PER_S, NS)
    return [*(_tax(entry, measure) if taxed else ()), *[clock] * wall]


def _bounds(entries: Sequence[Entry], reference: Reference | None) -> list[str]:
    substrates = dict.fromkeys(
        entry.row.identity.substrate for entry in entries if entry.row.tax_between_worker_hours is not None
    )
    texts = [reference[name].in_words(clean(name)) for name in substrates if reference and name in reference]
    return [UNSPLIT, *texts] if substrates else []


def _tax(entry: Entry, measure: str) -> Pieces:
    row, between, share = entry.row, entry.row.tax_between_worker_hours, tax_share(entry.row)
    if entry.amount is None:
        return [TableCell(), TableCell()]
    if share is not None and row.tax_worker_hours is not None:
        if measure == HELD_PER_SUCCESS:
            return [TableCell(share * entry.amount.value * NS_PER_S, NS), TableCell(share, SHARE)]
        return [TableCell(row.tax_worker_hours.value), TableCell(share, SHARE)]
    if between is not None and row.worker_hours is not None and row.worker_hours.value:
        low, high = (limit / row.worker_hours.value for limit in between)
        limits = TableCell(None, SHARE, low, high)
        if measure == HELD_PER_SUCCESS:
            whole = entry.amount.value * NS_PER_S
            return [TableCell(None, NS, low * whole, high * whole), limits]
        return [TableCell(None, "", *between), limits]
    return [TableCell(), TableCell()]


def _dollars(entry: Entry) -> Pieces:
    """Return the total dollars, and the same share of the dollars as the tax has of the worker-hours."""
    cost, share = entry.row.cost, tax_share(entry.row)
    if cost is None:
        return []
    return [
        TableCell(cost.total_usd, DOLLARS),
        TableCell() if share is None else TableCell(cost.total_usd * share, DOLLARS),
    ]


def _sheets(answer: Answer) -> list[str]:
    sheets = dict.fromkeys(
        clean(entry.row.cost.sheet) for line in answer.lines for entry in line.entries if entry.row.cost
    )
    return [*(f"Prices: {sheet}." for sheet in sheets), "Tax: the same share of the dollars as of the worker-hours."]


def _table(
    heading: str, answer: Answer, by: str | None, pieces: Callable[[Entry], Pieces], marks: FlagMarks | None = None
) -> Section:
    """A cell per workload and substrate; the names of rows have the letters of their warnings."""
    lines = [{entry.place: _content(pieces(entry)) for entry in line.entries} for line in answer.lines]
    cells = [[group.get(place, NOTHING) for place in answer.places] for group in lines]
    works = [clean(line.name) for line in answer.lines]
    if by != BY_SUBSTRATE:
        head = [HEAD, *map(_heading, answer.places)]
        names = [f"{work}{_letters(line.entries, marks)}" for work, line in zip(works, answer.lines, strict=True)]
    else:
        cells = [list(column) for column in zip(*cells, strict=True)]
        head = ["sandbox", *works]
        of_place = {place: [item for line in answer.lines if (item := line.at(place))] for place in answer.places}
        names = [f"{_heading(place)}{_letters(group, marks)}".replace("\n", " ") for place, group in of_place.items()]
    return Section(heading, head, [[name, *row] for name, row in zip(names, cells, strict=True)], [])


def _content(pieces: Pieces) -> Content:
    return CellGroup(tuple(pieces)) if any(map(any, pieces)) else NOTHING


def _letters(entries: Sequence[Entry], marks: FlagMarks | None) -> str:
    result = dict.fromkeys(letter for entry in entries for letter in marks.of(entry.row.flags)) if marks else {}
    return f" [{''.join(result)}]" if result else ""


def _heading(place: Place) -> str:
    name = clean(place.name)
    return name if place.provenance == "measured" else f"{name}\n{clean(place.provenance).replace('_', '-')}"
