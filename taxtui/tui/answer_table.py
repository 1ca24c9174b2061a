"""The answer as a table with a cursor: a line per workload, a column per substrate; narrower forms where needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text

from costmodel import Answer, Entry, Place, WorkLine, sentence
from taxtui.report.answer import sections
from taxtui.report.cells import Content, TableCell
from taxtui.report.formats import Section
from taxtui.report.numbers import NOTHING, parts
from taxtui.report.words import UNDECIDED
from taxtui.terminal_text import clean, fit
from taxtui.terminal_text import width as width_of
from taxtui.tui.arranging import Arrangement, arranged
from taxtui.tui.colours import glyph, substrate_style
from taxtui.tui.lists import MUTED, CursorList

BEST, REFERENCE = "best", "1x"
GAP: Final = 2


class AnswerCell(NamedTuple):
    """The parts of a cell: one workload at one substrate; an unknown part is ""."""

    value: str
    sure: str = ""
    ratio: str = ""
    ratio_sure: str = ""
    verdict: str = ""

    def parts(self, form: int) -> tuple[str, ...]:
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
    """The lines and columns of an answer, fitted to a width."""

    lines: Sequence[AnswerLine]
    by_place: bool
    form: int
    name_width: int
    widths: Sequence[Sequence[int]]  # of the parts of each column of cells


def cell_of(entry: Entry | None, answer: Answer, line: WorkLine) -> AnswerCell:
    """Return the parts of an entry; the reference is marked as the reference."""
    if entry is None or entry.amount is None:
        return ABSENT
    value, sure = sections.amount_cell(entry.amount, answer.measure).inline()
    cell = AnswerCell(value, sure)
    if entry.ratio is None:
        if entry.place == line.reference:
            return cell._replace(ratio=REFERENCE if answer.baseline else BEST)
        return cell
    ratio, ratio_sure = parts(entry.ratio, unit="x")
    verdict = UNDECIDED.get(entry.verdict.kind, "") if entry.verdict else ""
    return cell._replace(ratio=ratio, ratio_sure=ratio_sure, verdict=verdict)


def titles(answer: Answer) -> list[str]:
    """Return the columns that an answer can be sorted by."""
    return ["workload", *(clean(place.name) for place in answer.places)]


def laid_out(answer: Answer, arrangement: Arrangement, room: int) -> AnswerLayout:
    """Fit an answer into ``room`` columns: with less of every cell, at last with a line per workload and substrate."""
    ordered = [AnswerLine(answer.lines[number]) for number in _order(answer, arrangement)]
    name_width = max((width_of(clean(line.name)) for line in answer.lines), default=0)
    columns = [
        [cell_of(row.line.at(place), answer, row.line) for row in ordered if row.line] for place in answer.places
    ]
    for form in range(FORMS):
        widths = [_widths(column, form) for column in columns]
        headed = [max(_total(parts), _heading_width(p)) for parts, p in zip(widths, answer.places, strict=True)]
        if name_width + sum(GAP + width for width in headed) <= room:
            return AnswerLayout(ordered, False, form, name_width, widths)
    lines: list[AnswerLine] = []
    for place in answer.places:
        rows = [AnswerLine(row.line, place) for row in ordered if row.line and row.line.at(place)]
        lines += [AnswerLine(None, place), *rows] if rows else []
    cells = [cell_of(row.line.at(row.place), answer, row.line) for row in lines if row.line and row.place]
    form = next((form for form in range(FORMS) if name_width + GAP + _total(_widths(cells, form)) <= room), FORMS - 1)
    return AnswerLayout(lines, True, form, min(name_width, room // 2), [_widths(cells, form)])


def _heading_width(place: Place) -> int:
    return 2 + width_of(clean(place.name))


def _widths(cells: Sequence[AnswerCell], form: int) -> list[int]:
    return [max(map(width_of, texts)) for texts in zip(*(cell.parts(form) for cell in cells), strict=True)]


def _total(widths: Sequence[int]) -> int:
    visible = [width for width in widths if width]
    return sum(visible) + max(0, len(visible) - 1)


def _order(answer: Answer, arrangement: Arrangement) -> list[int]:
    """Return the numbers of the workloads to show, in order."""

    def cell(line: WorkLine) -> Content:
        if not arrangement.column or arrangement.column > len(answer.places):
            return line.name
        entry = line.at(answer.places[arrangement.column - 1])
        return TableCell() if entry is None or entry.amount is None else TableCell(entry.amount.value)

    def text(line: WorkLine) -> str:
        return " ".join([line.name, *(entry.place.name for entry in line.entries)])

    return arranged(answer.lines, arrangement, text=text, cell=cell)


def answer_section(answer: Answer, arrangement: Arrangement) -> Section:
    """Return the arranged table for copying: a line per workload."""
    lines = [answer.lines[number] for number in _order(answer, arrangement)]
    rows = []
    for line in lines:
        cells = [" ".join(filter(None, cell_of(line.at(place), answer, line))) for place in answer.places]
        rows.append([clean(line.name), *cells])
    head = ["workload", *(clean(place.name) for place in answer.places)]
    return Section(clean(sentence(answer)), head, rows, [])


EMPTY: Final = AnswerLayout((), False, 0, 0, ())


class AnswerTable(CursorList[AnswerLine]):
    """Values with intervals, ratios and verdicts; rows of the previous question are dim."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.answer: Answer | None = None
        self.arrangement = Arrangement()
        self._layout = EMPTY

    def present(self, answer: Answer | None, arrangement: Arrangement) -> None:
        """Show this answer; the cursor stays on its workload."""
        before = self.line
        self.answer, self.arrangement = answer, arrangement
        self._lay_out()
        if before is not None:
            self.put_on(before)

    def put_on(self, line: WorkLine) -> None:
        """Put the cursor on a work, wherever it is now."""
        like = [n for n, item in enumerate(self.items) if item.line and item.line.work == line.work]
        self.cursor = like[0] if like else 0

    def on_resize(self) -> None:
        self._lay_out()

    @property
    def line(self) -> WorkLine | None:
        return self.chosen.line if self.chosen else None

    def can_choose(self, number: int) -> bool:
        return self.items[number].line is not None

    def _lay_out(self) -> None:
        room = self.scrollable_content_region.width - 2
        if self.answer is None or room <= 0:
            self._layout = EMPTY
            self.show(())
            return
        self._layout = laid_out(self.answer, self.arrangement, room)
        heading = None if self._layout.by_place else self._heading(self.answer)
        self.show(self._layout.lines, heading)

    def _heading(self, answer: Answer) -> Text:
        line = Text(f"  {fit('workload', self._layout.name_width)}", MUTED)
        for place, width in zip(answer.places, self._columns(answer), strict=True):
            name = f"{glyph(place.label)} {clean(place.name)}"
            line.append(" " * (GAP + max(0, width - width_of(name))))
            line.append(name, substrate_style(place.label, dark=self.app.current_theme.dark))
        return line

    def _columns(self, answer: Answer) -> list[int]:
        """Return the width of each substrate's column: the widest of its cells and its name."""
        names = [2 + width_of(clean(place.name)) for place in answer.places]
        cells = [sum(width + 1 for width in widths if width) - 1 for widths in self._layout.widths]
        return [max(name, cell) for name, cell in zip(names, cells, strict=True)]

    def draw(self, item: AnswerLine, number: int, width: int) -> Text:
        """``T1 50 exec   159 ±26  best    855 ±121 5.38x ±0.2``."""
        assert self.answer is not None
        if item.line is None:
            assert item.place is not None
            name = f"{glyph(item.place.label)} {clean(item.place.name)}"
            how = "" if item.place.provenance == "measured" else f" {clean(item.place.provenance)}"
            style = substrate_style(item.place.label, dark=self.app.current_theme.dark)
            return Text.assemble((name, style), (how.replace("_", "-"), MUTED))
        line = Text(fit(clean(item.line.name), self._layout.name_width))
        if item.place is not None:
            line.append(" " * GAP)
            line.append_text(self._cell(item.line, item.place, self._layout.widths[0]))
            return self.marked(line, number, width)
        for place, widths, room in zip(
            self.answer.places, self._layout.widths, self._columns(self.answer), strict=True
        ):
            cell = self._cell(item.line, place, widths)
            line.append(" " * (GAP + max(0, room - cell.cell_len)))
            line.append_text(cell)
        return self.marked(line, number, width)

    def _cell(self, line: WorkLine, place: Place, widths: Sequence[int]) -> Text:
        assert self.answer is not None
        cell = cell_of(line.at(place), self.answer, line)
        text = Text()
        for part, width in zip(cell.parts(self._layout.form), widths, strict=True):
            if width:
                text.append(" " * (bool(text) + width - width_of(part)))
                text.append(part, _style(cell, part))
        return text


def _style(cell: AnswerCell, part: str) -> Style | str:
    if part in (cell.sure, cell.ratio_sure, BEST, REFERENCE):
        return MUTED
    return "bold" if part == cell.ratio and cell.verdict == "" else ""
