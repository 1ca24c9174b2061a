"""Results: the tables of what was measured, of one recording, of several together, or of one against another."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.background import Newest
from taxtui.tui.clipboard import copy
from taxtui.tui.dialogs import Choice, Choose
from taxtui.tui.numbered_screen import NumberedScreen
from taxtui.tui.recordings import catalogue
from taxtui.tui.results.model import TABLES, ResultsReader, Shown, Wanted
from taxtui.tui.results.table import HEAD_LINES, ResultTable
from taxtui.tui.top_bar import TopBar

NOTHING: Final = Shown((), ())


class TableTab(Static):
    """The name of a table; a click shows it."""

    def __init__(self, table: str, title: str) -> None:
        """A tab."""
        super().__init__(f" {title} ", markup=False)
        self.table = table

    async def on_click(self) -> None:
        """Show it."""
        await self.run_action(f"screen.show('{self.table}')")


class ResultsScreen(NumberedScreen):
    """One table at a time; it is read and computed in the background."""

    scope = "results"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("results")]
    AUTO_FOCUS = "#results"

    def __init__(self) -> None:
        """Nothing is read yet."""
        super().__init__()
        self.paths: tuple[Path, ...] = ()
        self.table = next(iter(TABLES))
        self.refusal = ""
        self.shown = NOTHING

    def contents(self) -> ComposeResult:
        """Tabs of the tables, the head in sight, the rows."""
        with Horizontal(id="tables"):
            for table, title in TABLES.items():
                yield TableTab(table, title)
        with Vertical(id="measured"):
            yield Static("", id="head", markup=False)
            yield ResultTable(id="results")
            yield Static("", id="why", markup=False)

    def on_mount(self) -> None:
        """Start what reads."""
        self._reading: Newest[Wanted, Shown] = Newest(ResultsReader().show, self._show, self._refuse, on=self)

    def on_unmount(self) -> None:
        """Let go of what reads."""
        self._reading.close()

    def arrive(self) -> None:
        """As ``NumberedScreen.arrive``."""
        self.paths = self.taxtui.subject()
        self.refresh_table()

    def restyle(self) -> None:
        """As ``NumberedScreen.restyle``."""
        self.query_one(ResultTable).refresh()

    def refresh_table(self) -> None:
        """Have the table read and computed."""
        for tab in self.query(TableTab):
            tab.set_class(tab.table == self.table, "current")
        self.query_one(ResultTable).empty = "reading …"
        self._reading.ask(Wanted(self.paths, self.taxtui.against, self.table))
        self._say()

    @property
    def settled(self) -> bool:
        """Nothing is being read."""
        return not self._reading.busy

    def _show(self, wanted: Wanted, shown: Shown) -> None:
        self.shown, self.refusal = shown, ""
        self.query_one(ResultTable).present(shown.parts)
        self._say()

    def _refuse(self, wanted: Wanted, why: str) -> None:
        self.shown, self.refusal = NOTHING, why
        self.query_one(ResultTable).empty = ""
        self.query_one(ResultTable).present([])
        self._say()

    @on(ResultTable.Scrolled)
    def show_head(self) -> None:
        """The head of the section in sight."""
        head = self.query_one(ResultTable).head
        lines = [*head, *[Text()] * HEAD_LINES][:HEAD_LINES]
        self.query_one("#head", Static).update(Text("\n").join(Text.assemble("  ", line) for line in lines))

    def _say(self) -> None:
        names = catalogue.names(self.paths) or "no recording"
        against = f" against {clean(self.taxtui.against.name)}" if self.taxtui.against else ""
        busy = "reading … · " if self._reading.busy else ""
        self.query_one(TopBar).say(Text(f"{busy}{names}{against}"))
        why = self.query_one("#why", Static)
        why.display = bool(self.refusal)
        why.update(Text(f"✗ {clean(self.refusal)}"))

    def action_table(self, step: int) -> None:
        """Another table."""
        tables = list(TABLES)
        self.action_show(tables[(tables.index(self.table) + step) % len(tables)])

    def action_show(self, table: str) -> None:
        """The table of a tab."""
        self.table = table
        self.refresh_table()

    def action_reload(self) -> None:
        """Read what the recording has grown by."""
        self.refresh_table()

    @work
    async def action_diff(self) -> None:
        """Compare with another recording, or no more."""
        listing = await asyncio.to_thread(catalogue.scan)
        choices: list[Choice[tuple[Path, ...]]] = []
        if self.taxtui.against:
            choices.append(Choice("compare no more", "", ()))
        for entry in listing.entries:
            if entry.path not in self.paths:
                note = entry.detail or f"{entry.state}, {', '.join(entry.substrates)}"
                choices.append(Choice(entry.name, note, (entry.path,), entry.state in catalogue.READABLE))
        if not choices:
            self.notify("there is no other recording to compare with", severity="warning")
            return
        chosen = await self.app.push_screen_wait(Choose("Compare with", choices))
        if chosen is not None:
            self.taxtui.against = chosen[0] if chosen else None
            self.refresh_table()

    @work
    async def action_copy(self) -> None:
        """The table in the form that a person chooses."""
        from taxtui.report.formats import FORMATS, Report, markdown_tables
        from taxtui.report.measured.record import record

        found = self.query_one(ResultTable)
        sections = [part.section for part in self.shown.parts]
        records = None
        if self.taxtui.against is None:
            records = [record(row, [self.table]) for row in self.shown.rows]
        report = Report(lambda: sections, None if records is None else lambda: records)
        choices = [Choice(one.title, one.about, one.render(report)) for one in FORMATS if one.tells(report)]
        choices.append(Choice("command", self._command(), self._command()))
        if found.row is not None:
            part, number = found.row
            section = part.section._replace(rows=[part.section.rows[number]], notes=[])
            row = markdown_tables.to_text([section])
            choices.insert(0, Choice("row", "the row under the cursor, as Markdown", row))
        chosen = await self.app.push_screen_wait(Choose("Copy", choices))
        if chosen:
            copy(self.app, chosen, f"{len(chosen.splitlines()):,} lines")

    def _command(self) -> str:
        words = ["taxtui", "report", *map(catalogue.shown, self.paths), "--table", self.table]
        return shlex.join(
            [*words, *(["--against", catalogue.shown(self.taxtui.against)] if self.taxtui.against else [])]
        )

    async def action_project(self) -> None:
        """Project what is shown; what it is compared with stays."""
        self.taxtui.chosen = self.paths
        await self.taxtui.action_go("projection")

    def action_export(self) -> None:
        """This screen as an SVG beside the recording."""
        if self.paths:
            self.export(self.paths[0].with_suffix(".results.svg"))
