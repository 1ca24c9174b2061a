"""Projection: what any number of trajectories would cost; numbers and curves follow while a person types."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input, Static

from costmodel.whatif import Curve
from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.background import Newest
from taxtui.tui.clipboard import copy
from taxtui.tui.colours import themed
from taxtui.tui.dialogs import Tell
from taxtui.tui.lists.cursor_list import CursorList
from taxtui.tui.numbered_screen import NumberedScreen
from taxtui.tui.projection import form
from taxtui.tui.projection.curve_plot import AXES, VALUES, CurvePlot
from taxtui.tui.projection.form_panel import FormPanel
from taxtui.tui.projection.model import Answered, CurveAsked, ProjectionAsked, Projector, curves, stops
from taxtui.tui.projection.rows import ProjectionRows
from taxtui.tui.recordings import catalogue
from taxtui.tui.top_bar import TopBar

PAUSE_S: Final = 0.08  # in typing, before it is answered
MAX_CURVES: Final = 6


class ProjectionScreen(NumberedScreen):
    """The form on the left, the answer on the right."""

    scope = "projection"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("projection")]
    AUTO_FOCUS = "#form"

    def __init__(self) -> None:
        """Nothing is answered yet."""
        super().__init__()
        self.paths: tuple[Path, ...] = ()
        self.answered: Answered | None = None
        self.refusal = ""
        self.axis = AXES[0]
        self._curves: list[Curve] = []
        self._curves_axis = self.axis
        self._others: list[str] = []  # recordings that could be projected instead
        self._typing = ""  # the option whose value is typed
        self._pause: Timer | None = None

    def contents(self) -> ComposeResult:
        """Inputs, rows, what the flags mean, curves."""
        with Horizontal(id="projection"):
            with Vertical(id="asked"):
                yield FormPanel(id="form")
                yield Static("", id="hint", markup=False)
                yield Input(id="exact", compact=True, select_on_focus=True)
            with Vertical(id="answer"):
                yield ProjectionRows(id="rows")
                yield Static("", id="words", markup=False)
                yield CurvePlot(id="curves")

    def on_mount(self) -> None:
        """Start what computes."""
        self._numbers: Newest[ProjectionAsked, Answered] = Newest(Projector().answer, self._show, self._refuse, on=self)
        self._curved: Newest[CurveAsked, list[Curve]] = Newest(curves, self._show_curves, self._without_curves, on=self)
        self.query_one("#form", FormPanel).border_title = "question · ←→ adjust · enter types"
        self.query_one("#rows").border_title = "answer"
        self.explain()

    def on_unmount(self) -> None:
        """Let go of what computes."""
        self._numbers.close()
        self._curved.close()

    def arrive(self) -> None:
        """As ``NumberedScreen.arrive``."""
        subject = self.taxtui.subject(succeeded=True)
        self._others = catalogue.others(subject)
        if self.paths != subject:  # what is shown is about something else
            self.paths, self.answered, self._curves = subject, None, []
            self.query_one("#rows", ProjectionRows).present([])
            self._draw_curves()
        self.ask()

    def restyle(self) -> None:
        """As ``NumberedScreen.restyle``."""
        self.query_one(CurvePlot).refresh()

    @property
    def asked(self) -> ProjectionAsked:
        """What is to be answered."""
        return ProjectionAsked(self.paths, dict(self.query_one("#form", FormPanel).values))

    @property
    def settled(self) -> bool:
        """Nothing is being computed, and nothing is about to be."""
        return not (self._numbers.busy or self._curved.busy or self._pause)

    @on(FormPanel.Changed)
    def hesitate(self) -> None:
        """Answer after the last key of a few."""
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE_S, self.ask)
        self.explain()

    def ask(self) -> None:
        """Have it answered in the background."""
        self._pause = None
        self._expect("computing …")
        self._numbers.ask(self.asked)
        self._say()

    def _show(self, asked: ProjectionAsked, answered: Answered) -> None:
        self.answered, self.refusal = answered, ""
        self.query_one("#form", FormPanel).offer(stops(answered.rows))
        self.query_one("#rows", ProjectionRows).present(answered.rows)
        self._curved.ask(CurveAsked(answered, self.axis))
        self._say()
        self.explain()

    def _refuse(self, asked: ProjectionAsked, why: str) -> None:
        self.refusal = why
        self._expect("")
        self._say()
        self.explain()

    def _expect(self, words: str) -> None:
        """What the rows say while there are none."""
        rows = self.query_one("#rows", ProjectionRows)
        rows.empty = words
        rows.refresh()

    def _show_curves(self, asked: CurveAsked, found: list[Curve]) -> None:
        self._curves, self._curves_axis = found, asked.axis
        self._draw_curves()

    def _without_curves(self, asked: CurveAsked, why: str) -> None:
        self._curves = []
        self._draw_curves(why)

    def _draw_curves(self, why: str = "") -> None:
        """Those of the same work as the row under the cursor, so that substrates can be compared by eye."""
        row, plot, axis = self.query_one("#rows", ProjectionRows).row, self.query_one(CurvePlot), self._curves_axis
        if row is None or self.answered is None:
            plot.present([], axis, None)
            return
        wanted = row.identity
        like = [
            one
            for one in self._curves
            if (one.identity.tier, one.identity.mode, one.identity.concurrency)
            == (wanted.tier, wanted.mode, wanted.concurrency)
            and (axis == "actions" or one.identity.actions == wanted.actions)
        ]
        at = {"trajectories": self.answered.demand.trajectories, "workers": self.answered.demand.workers}
        plot.border_title = Text(f"{VALUES[axis]} over {axis} · {clean(f'{wanted.tier} {wanted.mode}')} · x axis")
        plot.present(like[:MAX_CURVES], axis, at.get(axis, round(row.actions)), why or "no curve for this row")

    @on(CursorList.Moved)
    def moved(self) -> None:
        """Another option, or another row."""
        self.explain()
        self._draw_curves()

    def explain(self) -> None:
        """The help of the option under the cursor; the flags of the row under the cursor, or why there is no answer."""
        panel, rows = self.query_one("#form", FormPanel), self.query_one("#rows", ProjectionRows)
        self.query_one("#hint", Static).update(Text(panel.field.help, "dim"))
        told = Text()
        if self.refusal:
            told.append(f"✗ {clean(self.refusal)}", themed(self.app.theme_variables, "text-error"))
        elif rows.row is not None:
            brief = self.has_class("-medium")
            marks = rows.marks
            flags = [
                f"{marks.letters[flag]} {flag.replace('_', ' ') if brief else marks.told(flag)}"
                for flag in marks.own(rows.row.flags)
            ]
            flags += marks.of_all()
            told.append(" · ".join(flags) or "no reason to doubt this row", "dim")
        self.query_one("#words", Static).update(told)
        self.set_class(bool(self.refusal), "-refused")

    def _say(self) -> None:
        """``from run.msgpack · computing…`` in the first line."""
        names = catalogue.names(self.paths) or "no recording"
        busy = "computing … · " if self._numbers.busy else ""
        doubt = "not answered · " if self.refusal else ""
        others = f" · not: {', '.join(self._others)} (5)" if self._others else ""
        self.query_one(TopBar).say(Text(f"{doubt}{busy}{names}{others}"))

    def action_adjust(self, step: int) -> None:
        """The option's next value."""
        self.query_one("#form", FormPanel).adjust(step)

    def action_reset(self) -> None:
        """The option as it usually is."""
        self.query_one("#form", FormPanel).reset()

    def action_exact(self) -> None:
        """Type a value of the option under the cursor; a switch is turned."""
        panel, field = self.query_one("#form", FormPanel), self.query_one("#exact", Input)
        option = panel.field
        if option.flag:
            panel.set(option.name, "" if panel.values.get(option.name) else form.ON)
            return
        field.display = True
        with self.prevent(Input.Changed):
            field.value = panel.values.get(option.name, "")
        field.placeholder = f"{option.label}: not asked for"
        self._typing, self._before = option.name, field.value
        self.set_focus(field)  # at once: what is typed next goes there

    @on(Input.Changed, "#exact")
    def typed(self, event: Input.Changed) -> None:
        """The answer follows while a person types."""
        self.query_one("#form", FormPanel).set(self._typing, event.value)

    @on(Input.Submitted, "#exact")
    def typed_all(self) -> None:
        """Back to the list."""
        self.query_one("#exact", Input).display = False
        self.set_focus(self.query_one("#form"))

    def key_escape(self) -> None:
        """Take back what was typed."""
        if self.query_one("#exact", Input).display:
            self.query_one("#form", FormPanel).set(self._typing, self._before)
            self.typed_all()

    def action_axis(self) -> None:
        """Curves over something else."""
        self.axis = AXES[(AXES.index(self.axis) + 1) % len(AXES)]
        if self.answered:
            self._curved.ask(CurveAsked(self.answered, self.axis))

    def action_why(self) -> None:
        """How the row under the cursor was computed."""
        row = self.query_one("#rows", ProjectionRows).row
        if row is not None and self.answered:
            from taxtui.report.projected.explain import to_text

            derivation = partial(to_text, row, self.answered.demand)
            self.app.push_screen(Tell("How this row was computed", derivation))

    def action_details(self) -> None:
        """All tables, as the command line prints them."""
        if self.answered:
            from taxtui.report.formats import plain_tables
            from taxtui.report.projected.sections import sections

            found = sections(self.answered.rows, self.answered.demand, self.answered.sources)
            self.app.push_screen(Tell("All tables", partial(plain_tables.to_text, found), copyable=self._command()))

    def action_copy(self) -> None:
        """The command line that prints the same."""
        copy(self.app, self._command(), self._command())

    def _command(self) -> str:
        return form.command(self.paths, self.query_one("#form", FormPanel).values)

    def action_export(self) -> None:
        """This screen as an SVG beside the recording."""
        if self.paths:
            self.export(self.paths[0].with_suffix(".projection.svg"))
