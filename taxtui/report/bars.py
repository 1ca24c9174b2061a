"""Stacked bars by cause: the rows of one workload on one scale, for terminals and screens."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from typing import IO, Final, NamedTuple

from costmodel import NS_PER_S, Answer, Entry, WorkLine, ranking
from taxtui.report.headline import headline, middle_workload
from taxtui.report.numbers import CostUnit, compact, duration, money, number, unit_of
from taxtui.report.palette import LOOKS
from taxtui.report.words import CAUSES
from taxtui.terminal_text import clean, cut, fit, widest, wrap
from taxtui.terminal_text import width as width_of

MOST_BARS: Final = 12
WIDEST: Final = 100
"""Columns of a line with a bar, however wide the terminal is."""
NAME_COLUMNS: Final = 30
LEAST_ROOM: Final = 10
"""Columns of the longest bar, however long the names are."""


class Bar(NamedTuple):
    """Causes of one row's time."""

    label: str  # of the substrate
    name: str  # the label, numbered if several substrates share it
    mode: str
    parts: Mapping[str, float]  # by cause, in the unit of the chart
    text: str  # the whole
    note: str = ""  # printed after the whole if there is room
    provenance: str = ""


class BarChart(NamedTuple):
    """Bars on one scale, with a heading."""

    title: str
    bars: Sequence[Bar]
    hidden: int = 0  # further bars of the same workload

    @property
    def causes(self) -> list[str]:
        present = {cause for bar in self.bars for cause, size in bar.parts.items() if size > 0}
        return [cause for cause in CAUSES if cause in present]


class Pen(NamedTuple):
    """Drawing abilities of a terminal."""

    hatches: bool = True  # the encoding has block characters; else letters
    colour: bool = False


def pen_of(stream: IO[str]) -> Pen:
    """Return the drawing abilities of a stream.

    Colour needs a terminal, and neither NO_COLOR nor a TERM without colours; hatches need the block characters.
    """
    try:
        "".join(look.hatch for look in LOOKS.values()).encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        hatches = False
    else:
        hatches = True
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in ("", "dumb")
    return Pen(hatches, wanted and stream.isatty())


def chart(answer: Answer, line: WorkLine | None = None) -> BarChart | None:
    """Return the bars of a workload in all its modes; None without known causes.

    Args:
        answer: the ranking.
        line: the workload; by default that of ``workload_of``.
    """
    line = line or workload_of(answer)
    if line is None:
        return None
    alike = [item for item in answer.lines if item.work._replace(mode="") == line.work._replace(mode="")]
    bars = [bar for item in alike for bar in bars_of(answer, item)]
    if not bars:
        return None
    tier, length = clean(line.work.tier), str(line.work.length)
    name = ", ".join([" x ".join(part for part in (tier, length) if part), *map(clean, line.differences)])
    return BarChart(f"{measure_of(answer, line)} by cause, {name}", bars[:MOST_BARS], len(bars[MOST_BARS:]))


def charts(answer: Answer) -> list[BarChart]:
    """Return the bars of every workload, that of the headline first."""
    first = workload_of(answer)
    lines = {line.work._replace(mode=""): line for line in [*([first] if first else []), *answer.lines]}
    return [drawn for line in lines.values() if (drawn := chart(answer, line)) is not None]


def workload_of(answer: Answer) -> WorkLine | None:
    """Return the workload of the headline, else the middle workload with known causes, else the first."""
    return headline(answer) or _middle(answer) or next(iter(answer.lines), None)


def _middle(answer: Answer) -> WorkLine | None:
    """Return the workload of a headline without a pair of substrates."""
    lines = [line for line in answer.lines if bars_of(answer, line)]
    if not lines:
        return None
    if answer.modes:
        work = answer.modes[(len(answer.modes) - 1) // 2].work
        return next((line for line in lines if line.work == work), middle_workload(lines))
    return middle_workload(lines)


def measure_of(answer: Answer, line: WorkLine) -> str:
    """Return the name of the amounts in the bars of a workload."""
    if unit := _cost_unit(line):
        return f"Cost of the sandbox in {unit.name}"
    return "Time of one delivered trajectory" if answer.measure == ranking.HELD_PER_SUCCESS else "Worker-hours"


def _cost_unit(line: WorkLine) -> CostUnit | None:
    """Return the unit of a training run with steps, else None."""
    units = {unit_of(entry.row.attribution) for entry in line.entries if entry.row.attribution is not None}
    return min(units, default=None)  # dollars if all rows have prices


def bars_of(answer: Answer, line: WorkLine) -> list[Bar]:
    """Return a bar for each row with known causes, in the unit of the answer, the longest first."""
    bars = (_bar(answer, line, entry) for entry in line.entries if entry.place in answer.places)
    drawable = (bar for bar in bars if bar is not None and 1e-300 < sum(bar.parts.values()) < math.inf)
    return sorted(drawable, key=lambda bar: -sum(bar.parts.values()))


def _bar(answer: Answer, line: WorkLine, entry: Entry) -> Bar | None:
    row, unit, place = entry.row, _cost_unit(line), entry.place
    if unit is not None:
        if row.attribution is None:
            return None
        costs = {cause: unit.of(share).value for cause, share in row.attribution.causes.items() if share is not None}
        show = money if unit.usd else compact
        text = show(unit.of(row.attribution.sandbox).value)
        parts = {cause: cost for cause, cost in costs.items() if cost > 0}
        note = f"of {show(unit.of(row.attribution.run).value)}"
        return Bar(place.label, place.name, line.work.mode, parts, text, note, place.provenance)
    causes, hours = row.by_cause_worker_hours, row.worker_hours
    if causes is None or hours is None or entry.amount is None or not hours.value:
        return None
    scale = entry.amount.value / hours.value
    spent = causes.as_dict()
    parts = {cause: size * scale for cause in CAUSES if (size := spent.get(cause))}
    text = (
        duration(entry.amount.value * NS_PER_S)
        if answer.measure == ranking.HELD_PER_SUCCESS
        else number(entry.amount.value)
    )
    tax = row.tax_worker_hours
    note = "" if tax is None else f"{tax.value / hours.value:.0%} tax"
    return Bar(place.label, place.name, line.work.mode, parts, text, note, place.provenance)


def cells(parts: Mapping[str, float], scale: float) -> dict[str, int]:
    """Return the columns of each part in proportion; a bar has at least one column, a small part may have none."""
    edges, at = {}, 0.0
    for cause, size in parts.items():
        at += size * scale
        edges[cause] = round(at)
    widths, before = {}, 0
    for cause, edge in edges.items():
        if edge > before:
            widths[cause], before = edge - before, edge
    if not widths and parts:
        widths = {max(parts, key=parts.__getitem__): 1}
    return widths


def draw(bar_chart: BarChart, width: int, pen: Pen) -> list[str]:
    """Return the lines: a heading, one line per bar, and a legend."""
    room = min(width, WIDEST)
    names = [cut(clean(bar.name), min(NAME_COLUMNS, room // 3)) for bar in bar_chart.bars]
    modes = [cut(clean(bar.mode), NAME_COLUMNS // 2) for bar in bar_chart.bars]
    columns = [texts for texts in (names, modes) if any(texts)]
    widths = [widest(texts) for texts in columns]
    text_width = widest(bar.text for bar in bar_chart.bars)
    label_width = sum(widths) + 2 * len(widths) + text_width + 2
    longest = max(sum(bar.parts.values()) for bar in bar_chart.bars)
    scale = max(LEAST_ROOM, room - label_width) / (longest or 1)
    lines = wrap(f"{bar_chart.title}:", room, "  ")
    used: set[str] = set()
    for place, bar in enumerate(bar_chart.bars):
        head = "  ".join(fit(texts[place], group) for texts, group in zip(columns, widths, strict=True))
        drawn = cells(bar.parts, scale)
        used |= drawn.keys()
        body = "".join(_ink(cause, count, pen) for cause, count in drawn.items())
        lines.append(f"{head}  {' ' * (text_width - width_of(bar.text))}{bar.text}  {body}")
    legend = [
        (f"{_ink(cause, 1, pen)} {CAUSES[cause]}", 2 + width_of(CAUSES[cause])) for cause in LOOKS if cause in used
    ]
    lines += _flowing(legend, room)
    if narrow := _largest_shares(bar_chart, used):
        lines += wrap(f"Too small to draw: {narrow}.", room, "  ")
    if bar_chart.hidden:
        lines.append(f"{bar_chart.hidden:,} more bars: --tier, --mode and --substrate choose others.")
    return lines


def _largest_shares(bar_chart: BarChart, used: Collection[str]) -> str:
    """Return the causes without a column and their largest share of a bar: ``dispatch 0.56 %, startup 0.08 %``."""
    totals = [sum(bar.parts.values()) for bar in bar_chart.bars]
    shares = {
        cause: max(bar.parts.get(cause, 0.0) / total for bar, total in zip(bar_chart.bars, totals, strict=True))
        for cause in bar_chart.causes
        if cause not in used
    }
    return ", ".join(f"{CAUSES[cause]} {100 * share:.2g} %" for cause, share in shares.items())


def _flowing(pieces: Sequence[tuple[str, int]], room: int) -> list[str]:
    """Arrange pieces of text, each with its width, in lines of at most ``room`` columns."""
    lines: list[list[str]] = [[]]
    used = 0
    for text, columns in pieces:
        if lines[-1] and used + 2 + columns > room:
            lines.append([])
            used = 0
        used += columns + (2 if lines[-1] else 0)
        lines[-1].append(text)
    return ["  ".join(line) for line in lines if line]


def _ink(cause: str, count: int, pen: Pen) -> str:
    look = LOOKS[cause]
    text = (look.hatch if pen.hatches else look.letter) * count
    return f"\x1b[38;5;{_indexed(look.shade.dark)}m{text}\x1b[0m" if pen.colour else text


def _indexed(colour: str) -> int:
    """Return the nearest colour of the 6 x 6 x 6 cube of a terminal with 256 colours."""
    steps = (0, 95, 135, 175, 215, 255)
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    red, green, blue = (min(range(6), key=lambda step: abs(steps[step] - part)) for part in parts)
    return 16 + 36 * red + 6 * green + blue
