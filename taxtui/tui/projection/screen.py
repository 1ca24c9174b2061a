"""Projection: what any number of trajectories would cost; the answer and its pictures follow while a person types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Static

from costmodel.analysis.headline import sentence
from costmodel.analysis.ranking import Answer, WorkLine
from costmodel.projection.row import Projection
from costmodel.recording.reader import CellIdentity
from taxtui.live import catalogue
from taxtui.report.projected.attributed import headline
from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.answer.cells import titles
from taxtui.tui.answer.table import AnswerTable
from taxtui.tui.background import Unfolding
from taxtui.tui.clipboard import copy
from taxtui.tui.dialogs import Tell
from taxtui.tui.lists.cursor_list import CursorList
from taxtui.tui.projection import form
from taxtui.tui.projection.form_panel import FormPanel
from taxtui.tui.projection.model import Answered, ProjectionAsked, Projector, Refinement, refined, stops
from taxtui.tui.projection.picture_panel import PicturePanel
from taxtui.tui.projection.rows import ProjectionRows
from taxtui.tui.projection.typing_screen import TypingScreen
from taxtui.tui.top_bar import TopBar

PAUSE_S: Final = 0.08  # in typing, before it is answered
KEYS: Final = "o sorts · b groups · / filters · f all rows"


class ProjectionScreen(TypingScreen):
    """The answer above; below the form on the left, a picture on the right."""

    scope = "projection"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("projection")]
    AUTO_FOCUS = "#form"

    def __init__(self) -> None:
        """Nothing is answered yet."""
        super().__init__()
        self.answered: Answered | None = None
        self.found: Answer | None = None  # of what is answered
        self.refusal = ""
        self.full = False  # all rows with all their numbers, instead of the answer
        self._others: list[str] = []  # recordings that could be projected instead
        self._stale: frozenset[CellIdentity] = frozenset()  # rows of the question before
        self._pause: Timer | None = None

    def contents(self) -> ComposeResult:
        """The answer, what to know of it; then inputs and picture."""
        with Vertical(id="answer"):
            yield Static("", id="said", markup=False)
            yield AnswerTable(id="lines")
            yield ProjectionRows(id="rows")
            yield Static("", id="words", markup=False)
        with Horizontal(id="projection"):
            with Vertical(id="asked"):
                yield from self.form_fields()
            yield PicturePanel(id="picture")
        yield from self.filter_field()

    def on_mount(self) -> None:
        """Start what computes."""
        self._numbers: Unfolding[ProjectionAsked, Answered] = Unfolding(
            Projector().answers, self._show, self._refuse, self._refine, on=self
        )
        # in a thread of its own, so that a key is answered at once whatever is simulated for the one before
        self._simulated: Unfolding[Refinement, Answered] = Unfolding(
            refined, self._show, self._refuse, lambda _: self._say(), on=self
        )
        self.query_one("#form", FormPanel).border_title = "question · ←→ adjust · enter types, opens"
        self.explain()

    def on_unmount(self) -> None:
        """Let go of what computes."""
        self._numbers.close()
        self._simulated.close()

    def arrive(self) -> None:
        """As ``NumberedScreen.arrive``."""
        subject = self.taxtui.subject(succeeded=True)
        self._others = catalogue.others(subject)
        if self.paths != subject:  # what is shown is about something else
            self.paths, self.answered, self.found = subject, None, None
            self.arrange_anew()
            self.rearrange()
        self.ask()

    def restyle(self) -> None:
        """As ``NumberedScreen.restyle``."""
        self.rearrange()

    @property
    def asked(self) -> ProjectionAsked:
        """What is to be answered: first the works like the one that is looked at."""
        rows = self.looked_at
        typed = dict(self.query_one("#form", FormPanel).values)
        return ProjectionAsked(self.paths, typed, rows[0].identity if rows else None)

    @property
    def settled(self) -> bool:
        """Nothing is being computed, and nothing is about to be."""
        return not (self.busy or self.query_one(PicturePanel).busy or self._pause)

    @property
    def busy(self) -> bool:
        """Numbers are being computed."""
        return self._numbers.busy or self._simulated.busy

    @on(FormPanel.Changed)
    def hesitate(self) -> None:
        """Answer after the last key of a few."""
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE_S, self.ask)
        self.explain()

    def ask(self) -> None:
        """Have it answered in the background; what is computed for an earlier question ends."""
        self._pause = None
        self._expect("computing …")
        self._simulated.forget()
        self._numbers.ask(self.asked)
        self._say()

    def _refine(self, asked: ProjectionAsked) -> None:
        """Have simulated what was left out, the work that is looked at first."""
        rows = self.looked_at
        if self.answered is not None and self.answered.coarse:
            self._simulated.ask(Refinement(self.answered, rows[0].identity if rows else None))
        self._say()

    def _show(self, asked: ProjectionAsked | Refinement, answered: Answered) -> None:
        self.answered, self.refusal = self._with_earlier(answered), ""
        self.found = self.answered.answer
        self.query_one("#form", FormPanel).offer(stops(self.answered.rows))
        self.rearrange()
        self._say()

    def _with_earlier(self, answered: Answered) -> Answered:
        """With the rows of the question before, dim, in the place of those that are not answered yet."""
        before, known = self.answered, {row.identity for row in answered.rows}
        self._stale = frozenset()
        if before is None or not answered.partly or before.demand.length != answered.demand.length:
            return answered
        missing = [row for row in before.rows if row.identity not in known]
        self._stale = frozenset(row.identity for row in missing)
        order = {row.identity: number for number, row in enumerate(before.rows)}
        rows = sorted([*answered.rows, *missing], key=lambda row: order.get(row.identity, len(order)))
        return answered._replace(rows=rows)

    def _refuse(self, asked: ProjectionAsked | Refinement, why: str) -> None:
        self.refusal = why
        self._expect("")
        self._say()
        self.explain()

    def _expect(self, words: str) -> None:
        """What the tables say while there are none."""
        for table in self._tables:
            table.empty = words
            table.refresh()

    # --------------------------------------------------------------------------------------------------- the answer

    @property
    def _tables(self) -> tuple[AnswerTable, ProjectionRows]:
        return self.query_one(AnswerTable), self.query_one(ProjectionRows)

    @property
    def line(self) -> WorkLine | None:
        """The work that is looked at."""
        answers, rows = self._tables
        if not self.full or self.found is None:
            return answers.line
        row = rows.row
        return next((one for one in self.found.lines if any(entry.row is row for entry in one.entries)), None)

    @property
    def looked_at(self) -> Sequence[Projection]:
        """The rows under the cursor: of a work at all places, or one."""
        if self.full:
            row = self.query_one(ProjectionRows).row
            return [] if row is None else [row]
        return [entry.row for entry in self.line.entries] if self.line else []

    @property
    def columns(self) -> Sequence[str]:
        """As ``ArrangedScreen.columns``."""
        if self.full:
            return self.query_one(ProjectionRows).columns
        return titles(self.found, self.arrangement) if self.found else ()

    def rearrange(self) -> None:
        """As ``ArrangedScreen.rearrange``."""
        answers, rows = self._tables
        answers.display, rows.display = not self.full, self.full
        answers.present(self.found, self.arrangement, stale=self._stale)
        rows.present(self.answered.rows if self.answered else (), self.arrangement)
        order = self.arrangement.in_words(self.columns) or KEYS
        for table in self._tables:
            table.entitle(Text(f"{self._approximately}worker-hours · {order}"))
        self.explain()

    @property
    def _approximately(self) -> str:
        return "≈ " if self.answered and (self.answered.coarse or self._stale) else ""

    def focus_table(self) -> None:
        """As ``ArrangedScreen.focus_table``."""
        answers, rows = self._tables
        self.set_focus(rows if self.full else answers)

    @on(CursorList.Moved)
    def explain(self) -> None:
        """What there is to say of what is under the cursors, and its picture."""
        said = self.query_one("#said", Static)
        said.update(Text("\n").join(map(Text, self._sentences())))
        told, rows = Text(), self.looked_at
        if self.refusal:
            told.append(f"✗ {clean(self.refusal)}")
        elif rows:
            marks = self.query_one(ProjectionRows).marks
            brief = self.has_class("-medium")
            own = dict.fromkeys(flag for row in rows for flag in marks.own(row.flags))
            flags = [f"{marks.letters[flag]} {flag if brief else marks.line(flag)}" for flag in own]
            told.append(" · ".join([*flags, *marks.of_all()]) or "no reason to doubt this", "dim")
        self.query_one("#words", Static).update(told)
        self.set_class(bool(self.refusal), "-refused")
        self.explain_field()
        self.query_one(PicturePanel).show(self.answered, self.found, self.line)

    def _sentences(self) -> list[str]:
        """What the sandbox costs the run, where it is in steps; then which place is cheapest."""
        line, found = self.line, self.found
        costs = [entry for entry in line.entries if entry.row.attribution] if line else []
        told = [f"{clean(one.place.name)}: {headline(one.row.attribution)}" for one in costs if one.row.attribution]
        if found is not None and found.lines:
            told.append(f"{self._approximately}{clean(sentence(found))}")
        return told

    def _say(self) -> None:
        """``computing … · run.msgpack · others: short`` in the first line."""
        names = catalogue.names(self.paths) or "no recording"
        busy = "computing … · " if self.busy else ""
        doubt = "not answered · " if self.refusal else ""
        others = f" · 5 has {', '.join(self._others)}" if self._others else ""
        self.query_one(TopBar).say(Text(f"{doubt}{busy}{names}{others}", no_wrap=True, overflow="ellipsis"))

    # --------------------------------------------------------------------------------------------- what a person does

    def action_all_rows(self) -> None:
        """All rows with all their numbers, or the answer again."""
        self.full = not self.full
        self.arrangement = self.arrangement._replace(column=None, descending=False)
        self.rearrange()
        self.focus_table()

    def action_picture(self) -> None:
        """The next picture."""
        self.query_one(PicturePanel).next()

    def action_why(self) -> None:
        """How what is under the cursor was computed."""
        rows = self.looked_at
        if rows and self.answered:
            from taxtui.report.projected.explain import to_text

            demand = self.answered.demand

            def derivations(width: int) -> str:
                return "\n\n".join(to_text(row, demand, width) for row in rows)

            self.app.push_screen(Tell("How this was computed", derivations))

    def action_details(self) -> None:
        """All tables, as the command line prints them."""
        if self.answered:
            from taxtui.report.formats import plain_tables
            from taxtui.report.projected import attributed
            from taxtui.report.projected.sections import sections

            rows, demand = self.answered.rows, self.answered.demand
            found = [*attributed.sections(rows, demand), *sections(rows, demand, self.answered.sources)]
            command = f"{self._command()} --full"
            self.app.push_screen(Tell("All tables", partial(plain_tables.to_text, found), copyable=command))

    def action_copy(self) -> None:
        """The command line that prints the same."""
        copy(self.app, self._command(), self._command())

    def _command(self) -> str:
        return form.command(self.paths, self.query_one("#form", FormPanel).values)

    def action_export(self) -> None:
        """This screen as an SVG beside the recording."""
        if self.paths:
            self.export(catalogue.beside(self.paths[0], ".projection.svg"))

    def action_page(self) -> None:
        """A page of this question beside the recording."""
        self.write_page(["project", *map(str, self.paths), *form.words(self.query_one("#form", FormPanel).values)])

    def arrange_anew(self) -> None:
        """As ``ArrangedScreen.arrange_anew``; with the answer, not all rows."""
        self.full = False
        super().arrange_anew()
