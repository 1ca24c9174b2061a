"""An answer as lines of cells, as wide as there is room for: a line per work, or the works of each place below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from costmodel.analysis.ranking import Answer, Entry, Place, WorkLine
from taxtui.report.answer import table
from taxtui.report.answer.table import said
from taxtui.report.cells import Content, TableCell
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING, parts
from taxtui.report.words import UNDECIDED
from taxtui.terminal_text import clean
from taxtui.terminal_text import width as width_of
from taxtui.tui.answer.arranging import GROUPS, Arrangement, arranged

BEST, REFERENCE = "best", "1x"
GAP: Final = 2


class AnswerCell(NamedTuple):
    """One work at one place, in its parts; "" where a part is not told."""

    value: str
    sure: str = ""
    ratio: str = ""
    ratio_sure: str = ""
    verdict: str = ""

    def parts(self, form: int) -> tuple[str, ...]:
        """What of it is shown: 0 everything, then less and less."""
        match form:
            case 0:
                return tuple(self)
            case 1:
                return self.value, self.sure, self.ratio, self.verdict
            case 2:
                return self.value, self.ratio, self.verdict
        return self.ratio or self.value, self.verdict


FORMS: Final = 4
ABSENT: Final = AnswerCell(NOTHING)


class AnswerLine(NamedTuple):
    """A line on the screen: a work at all places, or at one, or the heading of a place."""

    line: WorkLine | None
    place: Place | None = None  # None: all of them


class AnswerLayout(NamedTuple):
    """What is to be drawn."""

    lines: Sequence[AnswerLine]
    by_place: bool
    form: int
    name_width: int
    widths: Sequence[Sequence[int]]  # of the parts of each column of cells


def cell_of(entry: Entry | None, found: Answer, line: WorkLine) -> AnswerCell:
    """An entry in its parts; the one that others are compared with says so."""
    if entry is None or entry.amount is None:
        return ABSENT
    value, sure = table.amount_cell(entry.amount, found.measure).inline()
    cell = AnswerCell(value, sure)
    if entry.ratio is None:
        if entry.place == line.reference:
            return cell._replace(ratio=REFERENCE if found.baseline else BEST)
        return cell
    ratio, ratio_sure = parts(entry.ratio, unit="x")
    verdict = UNDECIDED.get(entry.verdict.kind, "") if entry.verdict else ""
    return cell._replace(ratio=ratio, ratio_sure=ratio_sure, verdict=verdict)


def titles(found: Answer, asked: Arrangement) -> list[str]:
    """What it can be sorted by."""
    if asked.group == "substrate":
        return ["work", "value", "ratio"]
    return ["work", *(clean(place.name) for place in found.places)]


def laid_out(found: Answer, asked: Arrangement, room: int) -> AnswerLayout:
    """Fit it into ``room`` columns: with less of every cell, and at last with a line per work and place."""
    by_place = asked.group == "substrate"
    name_width = max((width_of(clean(line.name)) for line in found.lines), default=0)
    if not by_place:
        lines = [AnswerLine(found.lines[number]) for number in _order(found, asked)]
        columns = [
            [cell_of(one.line.at(place), found, one.line) for one in lines if one.line] for place in found.places
        ]
        for form in range(FORMS):
            widths = [_widths(column, form) for column in columns]
            headed = [max(_total(own), _heading_width(p)) for own, p in zip(widths, found.places, strict=True)]
            if name_width + sum(GAP + width for width in headed) <= room:
                return AnswerLayout(lines, False, form, name_width, widths)
    lines = _by_place(found, asked)
    cells = [cell_of(one.line.at(one.place), found, one.line) for one in lines if one.line and one.place]
    form = next((form for form in range(FORMS) if name_width + GAP + _total(_widths(cells, form)) <= room), FORMS - 1)
    return AnswerLayout(lines, True, form, min(name_width, room // 2), [_widths(cells, form)])


def _heading_width(place: Place) -> int:
    return 2 + width_of(clean(place.name))


def _widths(cells: Sequence[AnswerCell], form: int) -> list[int]:
    return [max(map(width_of, texts)) for texts in zip(*(cell.parts(form) for cell in cells), strict=True)]


def _total(widths: Sequence[int]) -> int:
    told = [width for width in widths if width]
    return sum(told) + max(0, len(told) - 1)


def _order(found: Answer, asked: Arrangement) -> list[int]:
    """Which lines are shown, in which order."""

    def cell(line: WorkLine) -> Content:
        if not asked.column:
            return line.name
        place = found.places[asked.column - 1] if asked.column <= len(found.places) else None
        return _sortable(line.at(place) if place else None)

    by = asked._replace(group="")  # a line is a work
    return arranged(found.lines, by, text=_text, group=lambda line: line.name, cell=cell)


def _by_place(found: Answer, asked: Arrangement) -> list[AnswerLine]:
    """Each place with the works that it did below it."""
    shown: list[AnswerLine] = []
    inner = asked._replace(group=GROUPS[0])
    for place in found.places:
        own = [AnswerLine(line, place) for line in found.lines if line.at(place)]

        def cell(one: AnswerLine) -> Content:
            assert one.line is not None
            entry = one.line.at(one.place) if one.place else None
            if asked.column == 1:
                return _sortable(entry)
            return (
                one.line.name if asked.column != 2 else TableCell(entry.ratio.value if entry and entry.ratio else 1.0)
            )

        def text(one: AnswerLine) -> str:
            return f"{one.line.name if one.line else ''} {one.place.name if one.place else ''}"

        order = arranged(own, inner, text=text, group=text, cell=cell)
        if order:
            shown += [AnswerLine(None, place), *(own[number] for number in order)]
    return shown


def _sortable(entry: Entry | None) -> TableCell:
    return TableCell() if entry is None or entry.amount is None else TableCell(entry.amount.value)


def _text(line: WorkLine) -> str:
    return " ".join([line.name, *(entry.place.name for entry in line.entries)])


def section(found: Answer, asked: Arrangement) -> Section:
    """The table as it is arranged, to be copied: a line per work."""
    lines = [found.lines[number] for number in _order(found, asked)]
    rows = []
    for line in lines:
        cells = [" ".join(filter(None, cell_of(line.at(place), found, line))) for place in found.places]
        rows.append([clean(line.name), *cells])
    head = ["work", *(clean(place.name) for place in found.places)]
    return Section(said(found), head, rows, [])
