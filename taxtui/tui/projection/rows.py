"""The rows of a projection, in one line each where there is room and in two where there is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from costmodel.projection.row import Projection
from costmodel.projection.warnings import MOST
from costmodel.statistics.intervals import Interval
from costmodel.statistics.verdict import Finding
from taxtui.report.cells import Content, TableCell
from taxtui.report.marks import FlagMarks
from taxtui.report.measured.rows import PROVENANCES
from taxtui.report.numbers import NOTHING, clock, hours, rounded_seconds, span, usd
from taxtui.report.projected.sections import mark, marks_of
from taxtui.terminal_text import clean, fit
from taxtui.tui.answer.arranging import Arrangement, arranged
from taxtui.tui.colours import glyph, substrate_style
from taxtui.tui.lists.cursor_list import CursorList
from taxtui.tui.lists.line_list import MUTED


class ProjectionLine(NamedTuple):
    """A row, or the second line of one."""

    row: Projection
    continued: bool = False


class TableColumn(NamedTuple):
    """A number of the wide layout."""

    title: str
    width: int


WORKER_HOURS, LIMITS, WALL = TableColumn("worker-h", 9), TableColumn("95 % interval", 17), TableColumn("wall h", 8)
TRAJECTORY, TAX, MONEY = TableColumn("mean s", 8), TableColumn("tax", 6), TableColumn("total $", 10)
VERSUS = TableColumn("vs baseline", 13)
SORTED = (WORKER_HOURS, WALL, TRAJECTORY, TAX, MONEY)


class ProjectionRows(CursorList[ProjectionLine]):
    """Worker-hours with their interval, wall-clock and flags of every row; more columns where they fit."""

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without rows."""
        super().__init__(id=id)
        self.rows: Sequence[Projection] = ()
        self._marks = marks_of([])
        self._columns: list[TableColumn] = []
        self._names: dict[int, str] = {}

    def present(self, rows: Sequence[Projection], asked: Arrangement) -> None:
        """Show these as they are asked for, the cursor on the cell where it was."""
        before = self.row
        self._marks = marks_of(rows)
        self.rows = [rows[number] for number in self._order(rows, asked)]
        self._lay_out()
        if before is not None:
            like = [n for n, line in enumerate(self.items) if line.row.identity == before.identity]
            self.cursor = like[0] if like else 0

    @property
    def columns(self) -> list[str]:
        """What the rows can be sorted by."""
        return ["substrate", "cell", *(column.title for column in SORTED)]

    def _order(self, rows: Sequence[Projection], asked: Arrangement) -> list[int]:
        def cell(row: Projection) -> Content:
            match asked.column:
                case None | 0:
                    return _label(row)
                case 1:
                    return _work(row)
            return TableCell(_amount(SORTED[asked.column - 2], row))

        def text(row: Projection) -> str:
            return f"{_label(row)} {_work(row)} {row.identity.actions}"

        group = _work if asked.group == "work" else _label
        return arranged(rows, asked, text=text, group=group, cell=cell)

    def on_resize(self) -> None:
        """Fit the columns into the new width."""
        if self.rows:
            self._lay_out()

    @property
    def row(self) -> Projection | None:
        """The row under the cursor."""
        return self.chosen.row if self.chosen else None

    @property
    def marks(self) -> FlagMarks:
        """How rows are marked with their flags."""
        return self._marks

    def can_choose(self, number: int) -> bool:
        """Not second lines."""
        return not self.items[number].continued

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        self._label_width = self.room_for(map(_label, self.rows))
        work = self.room_for(map(_work, self.rows))
        wanted = [WORKER_HOURS, LIMITS, WALL, TRAJECTORY, TAX]
        wanted += [MONEY] if any(row.cost for row in self.rows) else []
        wanted += [VERSUS] if any(row.versus for row in self.rows) else []
        room = width - 2 - 2 - self._label_width - 1 - work - 2 - MOST
        self._work_width = work
        needed = sum(column.width + 1 for column in wanted)
        for spare in (TRAJECTORY, TAX):
            if needed > room:
                wanted.remove(spare)
                needed -= spare.width + 1
        self._columns = wanted if needed <= room else []
        if self._columns:
            head = "".join(f" {column.title:>{column.width}}" for column in self._columns)
            heading = Text(f"    {'substrate':<{self._label_width}} {'cell':<{work}}{head}", MUTED)
            self.show([ProjectionLine(row) for row in self.rows], heading)
        else:
            self.show(
                [line for row in self.rows for line in (ProjectionLine(row), ProjectionLine(row, continued=True))]
            )

    def draw(self, item: ProjectionLine, number: int, width: int) -> Text:
        """``● docker:runc T1 50 exec  2,402  2,390 … 2,415  4.80``."""
        row = item.row
        if item.continued:
            return Text.assemble("    ", *self._brief(row))
        line = Text()
        style = substrate_style(row.label, dark=self.app.current_theme.dark)
        line.append(f"{glyph(row.label)} {fit(_label(row), self._label_width)} ", style)
        line.append(fit(_work(row), self._work_width))
        for column in self._columns:
            line.append(f" {_value(column, row):>{column.width}}", None if column is not LIMITS else MUTED)
        line.append(f"  {self._marks.of(row.flags)}", MUTED)
        return self.marked(line, number, width)

    def _brief(self, row: Projection) -> list[tuple[str, str] | str]:
        limits = span(row.worker_hours).replace(" ", "")
        parts: list[tuple[str, str] | str] = [f"{_value(WORKER_HOURS, row)} worker-h"]
        parts += [(f" {limits}", "dim")] if limits else []
        parts.append(f" · {_value(WALL, row)} h")
        parts += [f" · ${_value(MONEY, row)}"] if row.cost else []
        parts += [f" · {_value(VERSUS, row)}"] if row.versus else []
        return parts


def _label(row: Projection) -> str:
    return clean(f"{PROVENANCES.get(row.provenance, '')} {row.label}".strip())


def _work(row: Projection) -> str:
    return clean(" ".join(filter(None, (f"{row.identity.tier}×{row.length}", row.identity.mode))))


def _value(column: TableColumn, row: Projection) -> str:
    wall, trajectory = row.wall_clock_hours, row.trajectory_s
    total, tax = row.worker_hours, row.tax_worker_hours
    if column is WORKER_HOURS:
        return hours(total.value if total else None)
    if column is LIMITS:
        return span(total)
    if column is WALL:
        return clock(wall.value if wall else None)
    if column is TRAJECTORY:
        return rounded_seconds(trajectory.mean.value if trajectory else None)
    if column is TAX:
        return f"{tax.value / total.value:.1%}" if tax and total and total.value else NOTHING
    if column is MONEY:
        return usd(row.cost.total_usd) if row.cost else NOTHING
    return _versus(row.versus.worker_hours, row.versus.verdict) if row.versus else NOTHING


def _amount(column: TableColumn, row: Projection) -> float | None:
    """The number that a column is sorted by."""
    total, tax = row.worker_hours, row.tax_worker_hours
    match column.title:
        case WORKER_HOURS.title:
            return total.value if total else None
        case WALL.title:
            return row.wall_clock_hours.value if row.wall_clock_hours else None
        case TRAJECTORY.title:
            return row.trajectory_s.mean.value if row.trajectory_s else None
        case TAX.title:
            return tax.value / total.value if tax and total and total.value else None
    return row.cost.total_usd if row.cost else None


def _versus(delta: Interval, verdict: Finding) -> str:
    return f"{hours(delta.value, signed=True)}{mark(verdict)}"
