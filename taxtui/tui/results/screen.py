"""Results: the tables of one recording, or of several together."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from taxtui.live import catalogue
from taxtui.report.answer.sections import headline_text
from taxtui.report.measured import ladders
from taxtui.report.measured.sections import HEAD
from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.answer_table import AnswerTable, answer_section, titles
from taxtui.tui.arranging import ArrangedScreen
from taxtui.tui.background import Newest
from taxtui.tui.command_dialog import compare_with_another
from taxtui.tui.dialogs import Choice, Choose, copy
from taxtui.tui.ladder_plot import LadderPlot, LadderPoint
from taxtui.tui.lists import CursorList
from taxtui.tui.numbered_screen import TopBar
from taxtui.tui.results.model import (
    ANSWER,
    TABLES,
    ResultsReader,
    ResultsShown,
    Wanted,
    arranged_section,
    named,
    of_row,
)
from taxtui.tui.results.table import HEAD_LINES, ResultTable
from taxtui.tui.stacked_bars import UNKNOWN, StackedBars, cause_bars, causes_title

NOTHING: Final = ResultsShown((), ())
LONG: Final = "completion"
"""The long table that the answer leads to."""


class TableTab(Static):
    """The name of a table; a click shows it."""

    def __init__(self, table: str, title: str) -> None:
        super().__init__(f" {title} ", markup=False)
        self.table = table

    async def on_click(self) -> None:
        await self.run_action(f"screen.show('{self.table}')")


class ResultsScreen(ArrangedScreen):
    """The answer first, then one table at a time; all is read and computed in the background."""

    scope = "results"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("results")]
    AUTO_FOCUS = "#lines"

    def __init__(self) -> None:
        super().__init__()
        self.table = next(iter(TABLES))
        self.refusal = ""
        self.result = NOTHING

    def contents(self) -> ComposeResult:
        with Horizontal(id="tables"):
            for table, title in TABLES.items():
                yield TableTab(table, title)
        with Vertical(id="answer"):
            yield Static("", id="said", markup=False)
            yield AnswerTable(id="lines")
            yield StackedBars(id="causes")
        with Vertical(id="measured"):
            yield LadderPlot(id="climbed")
            yield Static("", id="head", markup=False)
            yield ResultTable(id="results")
        yield Static("", id="why", markup=False)
        yield from self.filter_field()

    def on_mount(self) -> None:
        self._reading: Newest[Wanted, ResultsShown] = Newest(ResultsReader().show, self._show, self._refuse, on=self)

    def on_unmount(self) -> None:
        self._reading.close()

    def arrive(self) -> None:
        subject = self.taxtui.subject()
        if self.paths != subject:
            self.paths = subject
            self.arrange_anew()
        self.refresh_table()

    def restyle(self) -> None:
        self.rearrange()

    def refresh_table(self) -> None:
        for tab in self.query(TableTab):
            tab.set_class(tab.table == self.table, "current")
        answers = self.table == ANSWER
        self.query_one("#answer").display = answers
        self.query_one("#measured").display = not answers
        for listed in (self.query_one(ResultTable), self.query_one(AnswerTable)):
            listed.empty = "reading …"
            if listed.display and listed.parent and listed.parent.display and self.focused in self._tables:
                self.set_focus(listed)
        self._reading.ask(Wanted(self.paths, self.table))
        self._say()

    @property
    def settled(self) -> bool:
        return not self._reading.busy

    @property
    def _tables(self) -> tuple[AnswerTable, ResultTable]:
        return self.query_one(AnswerTable), self.query_one(ResultTable)

    def _show(self, wanted: Wanted, result: ResultsShown) -> None:
        self.result, self.refusal = result, ""
        self.rearrange()
        self._say()

    def _refuse(self, wanted: Wanted, why: str) -> None:
        self.result, self.refusal = NOTHING, why
        for listed in self._tables:
            listed.empty = ""
        self.rearrange()
        self._say()

    @property
    def columns(self) -> Sequence[str]:
        if self.result.answer is not None:
            return titles(self.result.answer)
        heads = [section.head for section in self.result.sections if section.head[:1] == [HEAD]]
        return [" ".join(name.split()) for name in max(heads, key=len, default=[])]

    def rearrange(self) -> None:
        answer, (answers, results) = self.result.answer, self._tables
        answers.present(answer, self.arrangement)
        results.present([arranged_section(section, self.arrangement) for section in self.result.sections])
        self.show_ladder()
        self.query_one("#said", Static).update(headline_text(answer) if answer else "")
        order = self.arrangement.in_words(self.columns) or "o sorts · / filters"
        answers.entitle(Text(f"time per trajectory · {order} · enter long table"))
        results.entitle(Text(order))
        self.explain()

    def show_ladder(self) -> None:
        plot, climbed = self.query_one(LadderPlot), self.result.climbed
        plot.display = bool(climbed)
        if climbed:
            part = self.query_one(ResultTable).part
            ladder = climbed[min(part, len(climbed) - 1)]
            points = [
                LadderPoint(form.concurrency, form.actions_per_s.value, form.action_p95_ns) for form in ladder.levels
            ]
            plot.present(ladders.title(ladder), points, ladder.knee.at and ladder.knee.at.value)

    def focus_table(self) -> None:
        answers, results = self._tables
        self.set_focus(answers if self.table == ANSWER else results)

    @on(CursorList.Moved)
    def explain(self) -> None:
        answer, line = self.result.answer, self.query_one(AnswerTable).line
        bars = cause_bars(answer, line) if answer else ()
        heading = causes_title(answer, line) if answer else ""
        self.query_one(StackedBars).present(heading, bars, empty=UNKNOWN if line else "")

    @work
    async def action_open(self) -> None:
        if self.table == ANSWER:
            if self.query_one(AnswerTable).line is not None:
                self.action_show(LONG)
            return
        place = self.query_one(ResultTable).row
        if place is not None and place[0].head[:1] == [HEAD]:
            from taxtui.tui.trial import show_slowest

            name = place[0].rows[place[1]][0]
            answer = next((row for row in self.result.rows if named(row, name)), None)
            if answer is not None:
                await show_slowest(self, self.paths, partial(of_row, answer), f"{answer.label} {answer.details}")

    @on(ResultTable.Scrolled)
    def show_head(self) -> None:
        self.show_ladder()
        head = self.query_one(ResultTable).head
        lines = [*head, *[Text()] * HEAD_LINES][:HEAD_LINES]
        self.query_one("#head", Static).update(Text("\n").join(Text.assemble("  ", line) for line in lines))

    def _say(self) -> None:
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

    @work
    async def action_copy(self) -> None:
        from taxtui.report.formats import FORMATS, Report, markdown_tables
        from taxtui.report.measured.record import record

        listed = self.query_one(ResultTable)
        answer = self.result.answer
        sections = self.result.sections if answer is None else [answer_section(answer, self.arrangement)]
        records = None
        if answer is None:
            records = [record(row, [self.table]) for row in self.result.rows]
            records = ladders.records(self.result.climbed) or records
        report = Report(lambda: sections, None if records is None else lambda: records)
        choices = [Choice(form.title, form.about, form.render(report)) for form in FORMATS if form.tells(report)]
        choices.append(Choice("command", self._command(), self._command()))
        if listed.row is not None:
            section, number = listed.row
            row = markdown_tables.to_text([section._replace(rows=[section.rows[number]], notes=[])])
            choices.insert(0, Choice("row", "the row under the cursor, as Markdown", row))
        chosen = await self.app.push_screen_wait(Choose("Copy", choices))
        if chosen:
            copy(self.app, chosen, f"{len(chosen.splitlines()):,} lines")

    def _command(self) -> str:
        words = ["taxtui", "report", *map(catalogue.shown, self.paths)]
        return shlex.join([*words, *([] if self.table == ANSWER else ["--table", self.table])])

    def action_page(self) -> None:
        self.write_page(["report", *map(str, self.paths)])
