"""Bars by cause: the rows of one workload as stacked bars on one scale, for terminals, screens and pages."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import IO, Final, NamedTuple

from costmodel import HELD_PER_SUCCESS, NS_PER_S, Answer, Entry, WorkLine, headline, middle_workload
from taxtui.report.numbers import duration, number
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
    """One row of a workload and the causes of its time."""

    label: str  # of the substrate
    name: str  # the label, with a number where several substrates have it
    mode: str
    parts: Mapping[str, float]  # by cause, in the unit that all bars share
    text: str  # the whole
    note: str = ""  # printed behind the whole where there is room


class BarChart(NamedTuple):
    """Bars on one scale, with a heading."""

    title: str
    bars: Sequence[Bar]
    hidden: int = 0  # bars of the same workload that are not among them

    @property
    def causes(self) -> list[str]:
        present = {cause for bar in self.bars for cause, size in bar.parts.items() if size > 0}
        return [cause for cause in CAUSES if cause in present]


class Pen(NamedTuple):
    """The means of drawing that a terminal has."""

    hatches: bool = True  # its encoding has the block characters; else letters
    colour: bool = False


def pen_of(stream: IO[str]) -> Pen:
    """Return what a stream can show.

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


def chart(found: Answer, line: WorkLine | None = None) -> BarChart | None:
    """Return the bars of a workload in all its modes, each mode's substrates below one another.

    Args:
        found: the answer.
        line: the workload; by default the one that the headline is about, else the middle one.
    """
    line = line or headline(found) or _middle(found)
    if line is None:
        return None
    alike = [item for item in found.lines if item.work._replace(mode="") == line.work._replace(mode="")]
    bars = [bar for item in alike for bar in bars_of(found, item)]
    if not bars:
        return None
    tier, length = clean(line.work.tier), str(line.work.length)
    name = ", ".join([" x ".join(part for part in (tier, length) if part), *map(clean, line.differences)])
    return BarChart(f"{_unit(found)} by cause, {name}", bars[:MOST_BARS], len(bars[MOST_BARS:]))


def _middle(found: Answer) -> WorkLine | None:
    """Return the workload that a headline without a pair is about."""
    lines = [line for line in found.lines if bars_of(found, line)]
    if not lines:
        return None
    if found.modes:
        work = found.modes[(len(found.modes) - 1) // 2].work
        return next((line for line in lines if line.work == work), middle_workload(lines))
    return middle_workload(lines)


def _unit(found: Answer) -> str:
    return "Time of one delivered trajectory" if found.measure == HELD_PER_SUCCESS else "Worker-hours"


def bars_of(found: Answer, line: WorkLine) -> list[Bar]:
    """Return a bar for each row of a line whose causes are known, in the unit of the answer; the longest first."""
    entries = sorted(line.entries, key=lambda entry: -(entry.amount.value if entry.amount else 0.0))
    return [bar for entry in entries if entry.place in found.places and (bar := _bar(found, line, entry)) is not None]


def _bar(found: Answer, line: WorkLine, entry: Entry) -> Bar | None:
    causes, hours = entry.row.by_cause_worker_hours, entry.row.worker_hours
    if causes is None or hours is None or entry.amount is None or not hours.value:
        return None
    scale = entry.amount.value / hours.value
    spent = causes.as_dict()
    parts = {cause: size * scale for cause in CAUSES if (size := spent.get(cause))}
    text = duration(entry.amount.value * NS_PER_S) if found.measure == HELD_PER_SUCCESS else number(entry.amount.value)
    tax = entry.row.tax_worker_hours
    note = "" if tax is None else f"{tax.value / hours.value:.0%} tax"
    return Bar(entry.place.label, entry.place.name, line.work.mode, parts, text, note)


def cells(parts: Mapping[str, float], scale: float) -> dict[str, int]:
    """Return the columns of each part, in proportion: the bar has at least one, a part less than one may have none."""
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


def draw(shown: BarChart, width: int, pen: Pen) -> list[str]:
    """Return the lines: a heading, one line per bar, and once what each hatch stands for."""
    room = min(width, WIDEST)
    names = [cut(clean(bar.name), min(NAME_COLUMNS, room // 3)) for bar in shown.bars]
    modes = [cut(clean(bar.mode), NAME_COLUMNS // 2) for bar in shown.bars]
    columns = [texts for texts in (names, modes) if any(texts)]
    widths = [widest(texts) for texts in columns]
    text_width = widest(bar.text for bar in shown.bars)
    left = sum(widths) + 2 * len(widths) + text_width + 2
    longest = max(sum(bar.parts.values()) for bar in shown.bars)
    scale = max(LEAST_ROOM, room - left) / longest
    lines = wrap(f"{shown.title}:", room, "  ")
    used: set[str] = set()
    for place, bar in enumerate(shown.bars):
        head = "  ".join(fit(texts[place], group) for texts, group in zip(columns, widths, strict=True))
        drawn = cells(bar.parts, scale)
        used |= drawn.keys()
        body = "".join(_ink(cause, count, pen) for cause, count in drawn.items())
        lines.append(f"{head}  {' ' * (text_width - width_of(bar.text))}{bar.text}  {body}")
    legend = [
        (f"{_ink(cause, 1, pen)} {CAUSES[cause]}", 2 + width_of(CAUSES[cause])) for cause in LOOKS if cause in used
    ]
    lines += _flowing(legend, room)
    if narrow := _largest_shares(shown, used):
        lines += wrap(f"Too small to draw: {narrow}.", room, "  ")
    if shown.hidden:
        lines.append(f"{shown.hidden:,} more bars: --tier, --mode and --substrate choose others.")
    return lines


def _largest_shares(shown: BarChart, used: Collection[str]) -> str:
    """Return ``dispatch 0.56 %, startup 0.08 %``: the causes without a column and their largest share of any bar."""
    totals = [sum(bar.parts.values()) for bar in shown.bars]
    shares = {
        cause: max(bar.parts.get(cause, 0.0) / total for bar, total in zip(shown.bars, totals, strict=True))
        for cause in shown.causes
        if cause not in used
    }
    return ", ".join(f"{CAUSES[cause]} {100 * share:.2g} %" for cause, share in shares.items())


def _flowing(pieces: Sequence[tuple[str, int]], room: int) -> list[str]:
    """Return the pieces on as many lines as it takes, each piece with the columns that it needs."""
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
    """Return the nearest colour of the 6 x 6 x 6 cube that terminals of 256 colours have."""
    steps = (0, 95, 135, 175, 215, 255)
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    red, green, blue = (min(range(6), key=lambda step: abs(steps[step] - part)) for part in parts)
    return 16 + 36 * red + 6 * green + blue
