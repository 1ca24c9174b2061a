"""Results: the ranking and the tables of the chosen recordings."""

from __future__ import annotations

import shlex
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import Static

from taxtui.live import catalogue
from taxtui.report.answer.sections import headline_text
from taxtui.report.cells import RowName
from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.background import Newest
from taxtui.tui.command_dialog import compare_with_another
from taxtui.tui.dialogs import copy
from taxtui.tui.lists import CursorList
from taxtui.tui.numbered_screen import NumberedScreen, TopBar
from taxtui.tui.results.model import ANSWER, TABLES, ResultsReader, ResultsRequest, ResultsShown, is_named, is_of_row
from taxtui.tui.section_table import AnswerTable
from taxtui.tui.stacked_bars import StackedBars

NOTHING = ResultsShown((), ())


class TableTab(Static):
    """The name of a table; a click shows the table."""

    def __init__(self, table: str, title: str) -> None:
        super().__init__(f" {title} ", markup=False)
        self.table = table

    async def on_click(self) -> None:
        await self.run_action(f"screen.show('{self.table}')")


class ResultsScreen(NumberedScreen):
    """A table at a time, the ranking first; a thread reads and computes."""

    scope = "results"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("results")]
    AUTO_FOCUS = "#lines"

    def __init__(self) -> None:
        super().__init__()
        self.table = ANSWER
        self.refusal = ""
        self.result = NOTHING

    def contents(self) -> ComposeResult:
        with Horizontal(id="tables"):
            for table, title in TABLES.items():
                yield TableTab(table, title)
        yield Static("", id="said", markup=False)
        yield AnswerTable(id="lines")
        yield StackedBars(id="causes")
        yield Static("", id="why", markup=False)

    def on_mount(self) -> None:
        self._reading: Newest[ResultsRequest, ResultsShown] = Newest(
            ResultsReader().show, self._show, self._refuse, self._show_status, on=self
        )

    def on_unmount(self) -> None:
        self._reading.close()

    def arrive(self) -> None:
        self.paths = self.taxtui.subject()
        self.refresh_table()

    def refresh_table(self) -> None:
        """Read the recordings again, and show the chosen table."""
        for tab in self.query(TableTab):
            tab.set_class(tab.table == self.table, "current")
        self.query_one("#said").display = self.query_one("#causes").display = self.table == ANSWER
        self._rows.empty = "reading …"
        self._reading.ask(ResultsRequest(self.paths, self.table))
        self._show_status()

    @property
    def settled(self) -> bool:
        return not self._reading.busy

    @property
    def _rows(self) -> AnswerTable:
        return self.query_one(AnswerTable)

    def _show(self, result: ResultsShown) -> None:
        self.result, self.refusal = result, ""
        self.paint()

    def _refuse(self, reason: str) -> None:
        self.result, self.refusal = NOTHING, reason
        self.paint()

    def paint(self) -> None:
        answer, rows = self.result.answer, self._rows
        rows.empty = ""
        if answer is None:
            rows.present(self.result.sections)
        else:
            rows.rank(answer, notes=True)
        self.query_one("#said", Static).update(headline_text(answer) if answer else "")
        rows.entitle(Text("enter slowest trials" if answer is None else "time per trajectory · enter long table"))
        self.explain()

    @on(CursorList.Moved)
    def explain(self) -> None:
        """Show the causes of the workload under the cursor."""
        if self.result.answer:
            self.query_one(StackedBars).show_causes(self.result.answer, self._rows.workload)

    @work
    async def action_open(self) -> None:
        """Show the long table, or from the long table the slowest trials of a row."""
        if self.table == ANSWER:
            if self._rows.workload is not None:
                self.action_show("completion")
            return
        if self._rows.row is None:
            return
        section, number = self._rows.row
        name = section.rows[number][0]
        if isinstance(name, RowName):
            from taxtui.tui.trial import show_slowest

            row = next((row for row in self.result.rows if is_named(row, name)), None)
            if row is not None:
                await show_slowest(self, self.paths, partial(is_of_row, row), f"{row.label} {row.details}")

    def _show_status(self) -> None:
        names = catalogue.names(self.paths) or "no recording"
        busy = "reading … · " if self._reading.busy else ""
        self.query_one(TopBar).say(Text(f"{busy}{names}"))
        why = self.query_one("#why", Static)
        why.display = bool(self.refusal)
        why.update(Text(f"✗ {clean(self.refusal)}"))

    def action_switch(self, step: int) -> None:
        tables = list(TABLES)
        self.action_show(tables[(tables.index(self.table) + step) % len(tables)])

    def action_show(self, table: str) -> None:
        self.table = table
        self.refresh_table()

    def action_renew(self) -> None:
        self.refresh_table()

    @work
    async def action_diff(self) -> None:
        await compare_with_another(self, self.paths)

    def action_copy(self) -> None:
        copy(self.app, self._command(), self._command())

    def _command(self) -> str:
        words = ["taxtui", "report", *map(catalogue.path_text, self.paths)]
        return shlex.join([*words, *([] if self.table == ANSWER else ["--table", self.table])])

    def action_page(self) -> None:
        self.write_page(["report", *map(str, self.paths)])
