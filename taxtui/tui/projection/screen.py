"""Projection: the cost of a training run; answer and bars follow every change of the form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from costmodel import Answer, Row, WorkLine
from taxtui.live import catalogue
from taxtui.report.answer.sections import headline_text
from taxtui.report.projected.attributed import headline
from taxtui.report.projected.sections import marks_of
from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.background import Newest
from taxtui.tui.dialogs import Ask, Tell, columns, copy
from taxtui.tui.lists import CursorList
from taxtui.tui.numbered_screen import NumberedScreen, TopBar
from taxtui.tui.projection import form
from taxtui.tui.projection.form_panel import FormPanel
from taxtui.tui.projection.model import Answered, ProjectionAsked, Projector, choices
from taxtui.tui.section_table import AnswerTable
from taxtui.tui.stacked_bars import StackedBars


class ProjectionScreen(NumberedScreen):
    """The answer above, the form on the left below, and the causes of the cost on the right."""

    scope = "projection"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("projection")]
    AUTO_FOCUS = "#form"

    def __init__(self) -> None:
        super().__init__()
        self.answered: Answered | None = None
        self.ranking: Answer | None = None  # the ranking of ``answered``
        self.refusal = ""

    def contents(self) -> ComposeResult:
        with Vertical(id="answer"):
            yield Static("", id="said", markup=False)
            yield AnswerTable(id="lines")
            yield Static("", id="words", markup=False)
        with Horizontal(id="projection"):
            with Vertical(id="asked"):
                yield FormPanel(id="form")
                yield Static("", id="hint", markup=False)
            yield StackedBars(id="bars")

    def on_mount(self) -> None:
        self._answers: Newest[ProjectionAsked, Answered] = Newest(
            Projector().answers, self._show, self._refuse, self._show_status, on=self
        )
        self.form.border_title = "training run · enter types"
        self.explain()

    def on_unmount(self) -> None:
        self._answers.close()

    def arrive(self) -> None:
        subject = self.taxtui.subject(succeeded=True)
        if self.paths != subject:
            self.paths, self.answered, self.ranking = subject, None, None
            self.paint()
        self.ask()

    @property
    def settled(self) -> bool:
        return not self._answers.busy

    @on(FormPanel.Changed)
    def ask(self) -> None:
        """Compute the answer in the background, instead of the answer to an earlier question."""
        self.explain()
        self._announce("computing …")
        self._answers.ask(ProjectionAsked(self.paths, dict(self.form.values)))
        self._show_status()

    def _show(self, answered: Answered) -> None:
        self.answered, self.refusal = answered, ""
        self.ranking = answered.answer
        self.form.offer(choices(answered.rows))
        self.paint()
        self._show_status()

    def _refuse(self, reason: str) -> None:
        self.refusal = reason
        self._announce("")
        self.explain()

    def _announce(self, words: str) -> None:
        table = self.query_one(AnswerTable)
        table.empty = words
        table.refresh()

    @property
    def form(self) -> FormPanel:
        return self.query_one(FormPanel)

    @property
    def workload(self) -> WorkLine | None:
        return self.query_one(AnswerTable).workload

    @property
    def chosen_rows(self) -> Sequence[Row]:
        """The rows of the workload under the cursor."""
        return [entry.row for entry in self.workload.entries] if self.workload else []

    def paint(self) -> None:
        table = self.query_one(AnswerTable)
        if self.ranking is None:
            table.present([])
        else:
            table.empty = ""
            table.rank(self.ranking, notes=False)
        table.entitle(Text(f"{self._approximately}worker-hours · w why"))
        self.explain()

    @property
    def _approximately(self) -> str:
        return "≈ " if self.answered and self.answered.coarse else ""

    @on(CursorList.Moved)
    def explain(self) -> None:
        self.query_one("#said", Static).update(Text("\n").join(map(Text, self._sentences())))
        words, rows = Text(), self.chosen_rows
        if self.refusal:
            words.append(f"✗ {clean(self.refusal)}")
        elif rows:
            marks = marks_of(rows)
            families = dict.fromkeys([*marks.shared, *(name for row in rows for name in marks.families_of(row.flags))])
            brief = self.has_class("-medium")
            texts = [family if brief else marks.line(family) for family in families]
            words.append(f"Warnings: {' · '.join(texts)}" if texts else "No warnings.", "dim")
        self.query_one("#words", Static).update(words)
        self.set_class(bool(self.refusal), "-refused")
        self.query_one("#hint", Static).update(Text(self.form.help, "dim"))
        self.query_one(StackedBars).show_causes(self.ranking, self.workload)

    def _sentences(self) -> list[str]:
        """Return the cost of the sandbox for a run in steps, then the headline."""
        workload, ranking = self.workload, self.ranking
        costs = [entry for entry in workload.entries if entry.row.attribution] if workload else []
        sentences = [
            f"{clean(entry.place.name)}: {headline(entry.row.attribution)}" for entry in costs if entry.row.attribution
        ]
        if ranking is not None and ranking.lines:
            sentences.append(f"{self._approximately}{headline_text(ranking)}")
        return sentences

    def _show_status(self) -> None:
        """Show ``computing … · run.msgpack`` in the first line."""
        names = catalogue.names(self.paths) or "no recording"
        busy = "computing … · " if self._answers.busy else ""
        refused = "not answered · " if self.refusal else ""
        self.query_one(TopBar).say(Text(f"{refused}{busy}{names}", no_wrap=True, overflow="ellipsis"))

    @work
    async def action_decide(self) -> None:
        from taxtui.tui.projection.decision import ask

        if self.answered is not None:
            await ask(self, self.paths, self.answered, self.form.values, self.workload)

    def action_why(self) -> None:
        rows = self.chosen_rows
        if rows and self.answered:
            from taxtui.report.projected.explain import to_text

            run, width = self.answered.training_run, columns(self.app)
            text = "\n\n".join(to_text(row, run, width) for row in rows)
            self.app.push_screen(Tell("How this was computed", Text(text, no_wrap=True)))

    def action_copy(self) -> None:
        copy(self.app, self._command(), self._command())

    def _command(self) -> str:
        return form.command(self.paths, self.form.values)

    def action_page(self) -> None:
        self.write_page(["project", *map(str, self.paths), *form.words(self.form.values)])

    def action_adjust(self, step: int) -> None:
        """Change the option under the cursor."""
        self.form.adjust(step)

    def action_load(self) -> None:
        self.form.find(form.FILE)
        self.action_open()

    @work
    async def action_open(self) -> None:
        """Ask for the value of the option under the cursor, or toggle a switch."""
        option = self.form.field
        if option is None:
            return
        value = self.form.value(option.name)
        if option.flag:
            self.form.set(option.name, "" if value else form.ON)
            return
        typed = await self.app.push_screen_wait(Ask(option.label, self.form.help, value=value))
        if typed is not None and typed != value:
            self.form.set(option.name, typed)
