"""The answer as tables: a line per work, a column per place; then what of it is tax, and what that costs."""

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
"""Columns of a name in the sentence."""
S_PER_HOUR: Final = 3_600.0

Pieces = Sequence[TableCell]
"""The amounts of one row at one substrate."""


def said(found: Answer) -> str:
    """The sentence, fit for a terminal; names of absurd length are cut."""
    text = clean(f"{sentence(found)}{_model_time(found)}")
    names = {*(place.name for place in found.places), *(line.work.tier for line in found.lines)}
    for name in sorted(map(clean, names), key=len, reverse=True):
        if width_of(name) > LONGEST:
            text = text.replace(name, cut(name, LONGEST))
    return text


def _model_time(found: Answer) -> str:
    """The model's time that the first sentence assumes; nothing where no trajectory succeeded."""
    line = headline(found) or next(iter(found.lines), None)
    rows = [entry.row for entry in line.entries if entry.amount is not None] if line is not None else []
    times = sorted({row.think_s for row in rows if row.think_s is not None})
    if not times:  # published latencies: unknown
        return ""
    if not times[-1]:
        return " The model's time is not included."
    ends = dict.fromkeys(duration(time_s * NS_PER_S) for time_s in (times[0], times[-1]))
    return f" The model's time is included: {' to '.join(ends)} per trajectory."


def sections(
    found: Answer,
    asked: str,
    *,
    workers: int | None = None,
    by: str | None = None,
    reference: Reference | None = None,
) -> list[Section]:
    """The sentence, bars by cause, the table, and the tax.

    Args:
        found: the answer.
        asked: what was asked, before the table's own heading; may be empty.
        workers: on how many; then the wall-clock stands beside the tax.
        by: what a line is, if not a work.
        reference: what bounds a tax that is not known, for the note that says so.
    """
    entries = [entry for line in found.lines for entry in line.entries]
    tables = [Section("", [], [], [said(found)]), *bars(found), main(found, asked, by), *modes(found)]
    taxed = any(entry.row.tax_worker_hours or entry.row.tax_between_worker_hours for entry in entries)
    parts = ["tax, as time and share"] * taxed
    parts += [] if workers is None else [f"wall-clock on {workers:,} worker{'s' * (workers != 1)}"]
    if parts:
        heading = "; ".join(parts)
        cells = partial(_beside, measure=found.measure, taxed=taxed, wall=workers is not None)
        beside = _table(f"{heading[0].upper()}{heading[1:]}", found, by, cells)
        names = [*["tax", "share"] * taxed, *["wall-clock"] * (workers is not None)]
        tables.append(beside._replace(notes=_bounds(entries, reference), amounts=names))
    if any(entry.row.cost for entry in entries):
        dollars = _table("Dollars, and their part that is tax", found, by, _dollars)
        tables.append(dollars._replace(notes=_sheets(found), amounts=["dollars", "tax"]))
    return tables


def bars(found: Answer) -> list[Section]:
    """The causes of the headline's workload as bars; none where no cause is known."""
    drawn = chart(found)
    return [] if drawn is None else [Section("", [], [], [], drawn)]


def main(found: Answer, asked: str, by: str | None = None, *, brief: bool = False) -> Section:
    """The table of amounts and ratios, with its notes; ``brief``: flags by name only."""
    marks = FlagMarks([entry.row.flags for line in found.lines for entry in line.entries], warnings.DO)
    unit = "worker-hours" if found.measure == WORKER_HOURS else "Time that one delivered trajectory occupies a worker"
    heading = f"{asked}: {unit}" if asked else unit
    if any(line.reference for line in found.lines):
        heading += f", and how many times {clean(found.baseline) if found.baseline else 'the cheapest'}"
    table = _table(heading, found, by, lambda entry: _main(entry, found), marks)
    names = ["time" if found.measure == HELD_PER_SUCCESS else "worker-hours", "ratio"]
    return table._replace(notes=_short_notes(found, marks) if brief else notes(found, marks), amounts=names)


def modes(found: Answer) -> list[Section]:
    """The table of ``exec`` against ``session``; none where no place did one work in both modes."""
    if not found.modes:
        return []
    ratios = {(mode.name, mode.place): mode for mode in found.modes}
    places = [place for place in found.places if any(mode.place == place for mode in found.modes)]
    names = list(dict.fromkeys(mode.name for mode in found.modes))
    cells = [
        [
            CellGroup((_ratio(mode.ratio, mode.verdict),)) if (mode := ratios.get((name, place))) else NOTHING
            for place in places
        ]
        for name in names
    ]
    lines: list[list[Content]] = [[clean(name), *row] for name, row in zip(names, cells, strict=True)]
    return [Section("How many times longer exec runs than session", ["tier n", *map(_heading, places)], lines, [])]


def notes(found: Answer, marks: FlagMarks) -> list[str]:
    """How to read the table, what is beside it and not compared, and reasons to doubt it."""
    rows = [entry.row for line in found.lines for entry in line.entries]
    told = variation.in_words(row.evidence.basis for row in rows if row.evidence)
    lines = [f"±: {told[0].lower() + told[1:]}" if told and not told[0].isdigit() else f"±: {told}"] if told else []
    lines += _at_least(entry.row for line in found.lines for entry in line.entries)
    lines += _verdicts(found)
    if found.unranked:
        names = ", ".join(f"{clean(place.name)} ({clean(place.provenance)})" for place in found.unranked)
        lines.append(f"Beside, not compared with what was {found.ground.replace('_', '-')}: {names}.")
    lines += [f"{clean(place.name)}: {clean(place.differs)}" for place in found.places if place.differs]
    if any(entry.another_environment for line in found.lines for entry in line.entries):
        lines.append("Not all of it is from one machine, region or kernel.")
    return [*lines, *marks.notes()]


def _at_least(rows: Iterable[Row]) -> list[str]:
    """Which concurrency to measure where a row has a lower limit only."""
    missing: dict[tuple[int, int], None] = {}
    for row in rows:
        hours, levels = row.worker_hours, row.levels
        if levels is not None and hours is not None and hours.at_least:
            missing[levels.levels[-1][0], levels.at_a_time] = None
    return [
        f"≥: at least, as measured with {measured:,} at a time; {asked:,} share a host here: measure --concurrency "
        f"{asked}, or give nodes and pods_per_node."
        for measured, asked in missing
    ]


def _short_notes(found: Answer, marks: FlagMarks) -> list[str]:
    lines = [f"All: {', '.join(marks.shared)}."] if marks.shared else []
    return [*_verdicts(found), *lines, *marks.brief()]


def _verdicts(found: Answer) -> list[str]:
    """Return the notes about the verdicts beside ratios."""
    verdicts = [entry.verdict for line in found.lines for entry in line.entries if entry.verdict]
    verdicts += [item.verdict for item in found.modes]
    tie = any(item.kind == TIE for item in verdicts)
    lines = [f"{NO_DIFFERENCE}: the interval of the difference includes 0."] * tie
    lines += dict.fromkeys(
        f"{INCONCLUSIVE} {item.reason}: more than varies within a repetition, less than repetitions may differ by."
        for item in verdicts
        if item.kind == CANNOT_TELL
    )
    return lines


def _main(entry: Entry, found: Answer) -> Pieces:
    """``855 ±121  3.48x ±0.12``."""
    ratio = [] if entry.ratio is None else [_ratio(entry.ratio, entry.verdict)]
    return [] if entry.amount is None else [amount_cell(entry.amount, found.measure), *ratio]


def amount_cell(amount: Interval, measure: str) -> TableCell:
    """The amount of an entry: worker-hours, or a duration."""
    return TableCell(*amount[:1], "", *amount[1:]) if measure == WORKER_HOURS else _duration(amount)


def _duration(seconds: Interval) -> TableCell:
    value, low, high = seconds.times(NS_PER_S)
    return TableCell(value, NS, low, high)


def _ratio(ratio: Interval, verdict: Finding | None) -> TableCell:
    """``4.31x ±0.26 no difference``."""
    return TableCell(ratio.value, TIMES, ratio.low, ratio.high, UNDECIDED.get(verdict.kind if verdict else "", ""))


def _beside(entry: Entry, *, measure: str, taxed: bool, wall: bool) -> Pieces:
    """``745  87 %  1.71 h``."""
    hours = entry.row.wall_clock_hours
    clock = TableCell() if hours is None else TableCell(hours.value * S_PER_HOUR * NS_PER_S, NS)
    return [*(_tax(entry, measure) if taxed else ()), *[clock] * wall]


def _bounds(entries: Sequence[Entry], reference: Reference | None) -> list[str]:
    """Why a tax has limits instead of a value, where one has."""
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
        low, high = (end / row.worker_hours.value for end in between)
        limits = TableCell(None, SHARE, low, high)
        if measure == HELD_PER_SUCCESS:
            whole = entry.amount.value * NS_PER_S
            return [TableCell(None, NS, low * whole, high * whole), limits]
        return [TableCell(None, "", *between), limits]
    return [TableCell(), TableCell()]


def _dollars(entry: Entry) -> Pieces:
    """All that is charged, and as much of it as the tax is of the worker-hours."""
    cost, share = entry.row.cost, tax_share(entry.row)
    if cost is None:
        return []
    return [
        TableCell(cost.total_usd, DOLLARS),
        TableCell() if share is None else TableCell(cost.total_usd * share, DOLLARS),
    ]


def _sheets(found: Answer) -> list[str]:
    sheets = dict.fromkeys(
        clean(entry.row.cost.sheet) for line in found.lines for entry in line.entries if entry.row.cost
    )
    return [*(f"Prices: {sheet}." for sheet in sheets), "Tax: the same share of the dollars as of the worker-hours."]


def _table(
    heading: str, found: Answer, by: str | None, pieces: Callable[[Entry], Pieces], marks: FlagMarks | None = None
) -> Section:
    """A cell per workload and substrate; the names of rows have the letters of their warnings."""
    lines = [{entry.place: _content(pieces(entry)) for entry in line.entries} for line in found.lines]
    cells = [[group.get(place, NOTHING) for place in found.places] for group in lines]
    works = [clean(line.name) for line in found.lines]
    if by != BY_SUBSTRATE:
        head = [HEAD, *map(_heading, found.places)]
        names = [f"{work}{_letters(line.entries, marks)}" for work, line in zip(works, found.lines, strict=True)]
    else:
        cells = [list(column) for column in zip(*cells, strict=True)]
        head = ["sandbox", *works]
        of_place = {place: [item for line in found.lines if (item := line.at(place))] for place in found.places}
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
