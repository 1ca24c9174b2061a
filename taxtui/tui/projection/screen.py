"""Projection: the cost of a training run; the answer and its pictures follow while a person types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input, Static

from costmodel import Answer, Row, WorkLine
from taxtui.live import catalogue
from taxtui.report.answer.sections import headline_text
from taxtui.report.projected.attributed import headline
from taxtui.report.projected.sections import marks_of
from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.answer_table import AnswerTable, titles
from taxtui.tui.arranging import ArrangedScreen
from taxtui.tui.background import Newest, Unfolding
from taxtui.tui.dialogs import Tell, copy
from taxtui.tui.lists import CursorList
from taxtui.tui.numbered_screen import TopBar
from taxtui.tui.projection import form
from taxtui.tui.projection.form_panel import FormPanel
from taxtui.tui.projection.model import Answered, ProjectionAsked, Projector, Refinement, refined, stops
from taxtui.tui.projection.pictures import PicturePanel

PAUSE_S: Final = 0.08  # between the last key and the answer
KEYS: Final = "o sorts · / filters · w why · f full tables"


class ProjectionScreen(ArrangedScreen):
    """The answer above; below it the form on the left and a picture on the right."""

    scope = "projection"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("projection")]
    AUTO_FOCUS = "#form"

    def __init__(self) -> None:
        super().__init__()
        self.answered: Answered | None = None
        self.ranking: Answer | None = None  # the ranking of ``answered``
        self.refusal = ""
        self._pause: Timer | None = None
        self._typing = ""  # the option whose value is typed
        self._before = ""  # its previous value

    def contents(self) -> ComposeResult:
        with Vertical(id="answer"):
            yield Static("", id="said", markup=False)
            yield AnswerTable(id="lines")
            yield Static("", id="words", markup=False)
        with Horizontal(id="projection"):
            with Vertical(id="asked"):
                yield FormPanel(id="form")
                yield Static("", id="hint", markup=False)
                with Horizontal(id="typing"):
                    yield Static("", id="name", markup=False)
                    yield Input(id="exact", compact=True, select_on_focus=True)
            yield PicturePanel(id="picture")
        yield from self.filter_field()

    def on_mount(self) -> None:
        self._numbers: Newest[ProjectionAsked, Answered] = Newest(
            Projector().answer, self._show_first, self._refuse, on=self
        )
        # in a thread of its own, so that a key is answered at once whatever is simulated for the one before
        self._simulated: Unfolding[Refinement, Answered] = Unfolding(
            refined, self._show, self._refuse, lambda _: self._say(), on=self
        )
        self.form.border_title = "training run · enter types"
        self.explain()

    def on_unmount(self) -> None:
        self._numbers.close()
        self._simulated.close()

    def arrive(self) -> None:
        subject = self.taxtui.subject(succeeded=True)
        if self.paths != subject:  # what is shown is about something else
            self.paths, self.answered, self.ranking = subject, None, None
            self.arrange_anew()
            self.rearrange()
        self.ask()

    def restyle(self) -> None:
        self.rearrange()

    @property
    def request(self) -> ProjectionAsked:
        """The question of the form about the shown recordings."""
        return ProjectionAsked(self.paths, dict(self.form.values))

    @property
    def settled(self) -> bool:
        return not (self.busy or self.query_one(PicturePanel).busy or self._pause)

    @property
    def busy(self) -> bool:
        return self._numbers.busy or self._simulated.busy

    @on(FormPanel.Changed)
    def hesitate(self) -> None:
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE_S, self.ask)
        self.explain()

    def ask(self) -> None:
        """Have it answered in the background; what is computed for an earlier question ends."""
        self._pause = None
        self._expect("computing …")
        self._simulated.forget()
        self._numbers.ask(self.request)
        self._say()

    def _show_first(self, request: ProjectionAsked, answered: Answered) -> None:
        self._show(request, answered)
        if answered.coarse:
            rows = self.looked_at
            self._simulated.ask(Refinement(answered, rows[0].identity if rows else None))
            self._say()

    def _show(self, request: ProjectionAsked | Refinement, answered: Answered) -> None:
        self.answered, self.refusal = answered, ""
        self.ranking = answered.answer
        self.form.offer(stops(answered.rows))
        self.rearrange()
        self._say()

    def _refuse(self, request: ProjectionAsked | Refinement, why: str) -> None:
        self.refusal = why
        self._expect("")
        self._say()
        self.explain()

    def _expect(self, words: str) -> None:
        table = self.query_one(AnswerTable)
        table.empty = words
        table.refresh()

    @property
    def form(self) -> FormPanel:
        return self.query_one(FormPanel)

    @property
    def line(self) -> WorkLine | None:
        return self.query_one(AnswerTable).line

    @property
    def looked_at(self) -> Sequence[Row]:
        return [entry.row for entry in self.line.entries] if self.line else []

    @property
    def columns(self) -> Sequence[str]:
        return titles(self.ranking) if self.ranking else ()

    def rearrange(self) -> None:
        table = self.query_one(AnswerTable)
        table.present(self.ranking, self.arrangement)
        order = self.arrangement.in_words(self.columns) or KEYS
        table.entitle(Text(f"{self._approximately}worker-hours · {order}"))
        self.explain()

    @property
    def _approximately(self) -> str:
        return "≈ " if self.answered and self.answered.coarse else ""

    def focus_table(self) -> None:
        self.set_focus(self.query_one(AnswerTable))

    @on(CursorList.Moved)
    def explain(self) -> None:
        self.query_one("#said", Static).update(Text("\n").join(map(Text, self._sentences())))
        words, rows = Text(), self.looked_at
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
        self.query_one(PicturePanel).show(self.answered, self.ranking, self.line)

    def _sentences(self) -> list[str]:
        """Return the sandbox's cost of a run in steps, then the headline."""
        line, ranking = self.line, self.ranking
        costs = [entry for entry in line.entries if entry.row.attribution] if line else []
        sentences = [
            f"{clean(entry.place.name)}: {headline(entry.row.attribution)}" for entry in costs if entry.row.attribution
        ]
        if ranking is not None and ranking.lines:
            sentences.append(f"{self._approximately}{headline_text(ranking)}")
        return sentences

    def _say(self) -> None:
        """``computing … · run.msgpack · others: short`` in the first line."""
        names = catalogue.names(self.paths) or "no recording"
        busy = "computing … · " if self.busy else ""
        doubt = "not answered · " if self.refusal else ""
        self.query_one(TopBar).say(Text(f"{doubt}{busy}{names}", no_wrap=True, overflow="ellipsis"))

    def action_view(self) -> None:
        self.query_one(PicturePanel).next()

    @work
    async def action_decide(self) -> None:
        from taxtui.tui.projection.decision import ask

        if self.answered is not None:
            await ask(self, self.paths, self.answered, self.form.values, self.line)

    def action_why(self) -> None:
        rows = self.looked_at
        if rows and self.answered:
            from taxtui.report.projected.explain import to_text

            training_run = self.answered.training_run

            def derivations(width: int) -> str:
                return "\n\n".join(to_text(row, training_run, width) for row in rows)

            self.app.push_screen(Tell("How this was computed", derivations))

    def action_full(self) -> None:
        if self.answered:
            from taxtui.report.formats import plain_tables
            from taxtui.report.projected import attributed
            from taxtui.report.projected.sections import sections

            rows, training_run = self.answered.rows, self.answered.training_run
            tables = [*attributed.sections(rows, training_run), *sections(rows, training_run, self.answered.sources)]
            command = f"{self._command()} --full"
            self.app.push_screen(Tell("All tables", partial(plain_tables.to_text, tables), copyable=command))

    def action_copy(self) -> None:
        copy(self.app, self._command(), self._command())

    def _command(self) -> str:
        return form.command(self.paths, self.form.values)

    def action_page(self) -> None:
        self.write_page(["project", *map(str, self.paths), *form.words(self.form.values)])

    # ----------------------------------------------------------------------------------------------------- the form

    def action_adjust(self, step: int) -> None:
        """Take the option's next value; open or fold a group."""
        self.form.adjust(step)

    def action_load(self) -> None:
        self.form.find(form.FILE)
        self.action_open()

    def action_open(self) -> None:
        """Type a value of the option under the cursor; turn a switch, open or fold a group."""
        field, option = self.query_one("#exact", Input), self.form.field
        if option is None:
            self.form.turn()
            return
        if option.flag:
            self.form.set(option.name, "" if self.form.value(option.name) else form.ON)
            return
        self.query_one("#typing").display = True
        self.query_one("#name", Static).update(f"{option.label}: ")
        with self.prevent(Input.Changed):
            field.value = self.form.value(option.name)
        field.placeholder = self.form.examples(option)
        self._typing, self._before = option.name, self.form.values.get(option.name, "")
        self.set_focus(field)  # at once: the next key goes there

    @on(Input.Changed, "#exact")
    def typed(self, event: Input.Changed) -> None:
        """Answer while a person types; a path counts once it is complete."""
        if self._typing != form.FILE:
            self.form.set(self._typing, event.value)

    @on(Input.Submitted, "#exact")
    def typed_all(self, event: Input.Submitted | None = None) -> None:
        if event is not None and self._typing == form.FILE:
            self.form.set(form.FILE, event.value)
        self.query_one("#typing").display = False
        self.set_focus(self.form)

    def key_escape(self) -> None:
        """Take back what was typed; else drop the filter."""
        if self.query_one("#typing").display:
            self.form.set(self._typing, self._before)
            self.typed_all()
        else:
            super().key_escape()
