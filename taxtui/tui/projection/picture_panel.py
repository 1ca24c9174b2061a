"""The picture beside the form: what the sandbox costs by cause, or how a work moves with actions or workers."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical

from costmodel.analysis.ranking import Answer, WorkLine
from costmodel.analysis.sensitivity import Axis, Curve
from taxtui.terminal_text import clean
from taxtui.tui.answer import causes
from taxtui.tui.background import Newest
from taxtui.tui.projection.curve_plot import VALUES, CurvePlot
from taxtui.tui.projection.model import Answered, CurveAsked, curves
from taxtui.tui.projection.pictures import (
    PICTURES,
    Picture,
    break_even_words,
    cost_bars,
    cost_title,
    crossings,
    knee,
    knee_words,
)
from taxtui.tui.stacked_bars import StackedBars

MAX_CURVES: Final = 6
NO_STEPS: Final = "a run in steps has this picture: give a batch, or prompts and group size"


class PicturePanel(Vertical):
    """One picture at a time, of the work that is looked at; the first that says something until a person chooses."""

    def __init__(self, *, id: str | None = None) -> None:
        """Nothing is answered yet."""
        super().__init__(id=id)
        self.chosen: Picture | None = None
        self._answered: Answered | None = None
        self._found: Answer | None = None
        self._line: WorkLine | None = None
        self._curves: list[Curve] = []

    def compose(self) -> ComposeResult:
        """Lines or bars."""
        yield CurvePlot(id="curves")
        yield StackedBars(id="bars")

    def on_mount(self) -> None:
        """Start what computes curves."""
        self._curved: Newest[CurveAsked, list[Curve]] = Newest(curves, self._draw, self._without, on=self)

    def on_unmount(self) -> None:
        """Let go of what computes."""
        self._curved.close()

    @property
    def busy(self) -> bool:
        """Curves are being computed."""
        return self._curved.busy

    @property
    def picture(self) -> Picture:
        """The one that is shown."""
        if self.chosen is not None:
            return self.chosen
        return "cost" if cost_bars(self._line) else "actions"

    def next(self) -> None:
        """The next one."""
        self.chosen = PICTURES[(PICTURES.index(self.picture) + 1) % len(PICTURES)]
        self.show(self._answered, self._found, self._line)

    def show(self, answered: Answered | None, found: Answer | None, line: WorkLine | None) -> None:
        """Show the picture of a work."""
        self._answered, self._found, self._line = answered, found, line
        plot, bars = self.query_one(CurvePlot), self.query_one(StackedBars)
        curved = self.picture in ("actions", "workers")
        plot.display, bars.display = curved, not curved
        if answered is None or found is None or line is None:
            self._curves = []
            plot.border_title = "picture"
            plot.present([], "actions", ())
            bars.present("picture", [])
        elif self.picture == "cost":
            bars.present(cost_title(line), cost_bars(line), empty=NO_STEPS)
        elif self.picture == "causes":
            bars.present(causes.title(found, line), causes.bars(found, line), empty=causes.UNKNOWN)
        else:
            self._curved.ask(CurveAsked(answered, self.picture, line.entries[0].row.identity))

    def _draw(self, asked: CurveAsked, found: list[Curve]) -> None:
        self._present(asked.axis, found, "no curve for this work")

    def _without(self, asked: CurveAsked, why: str) -> None:
        self._present(asked.axis, [], why)

    def _present(self, axis: Axis, found: list[Curve], empty: str) -> None:
        line, answered = self._line, self._answered
        if line is None or answered is None or self.picture != axis:
            return
        work, plot = line.work, self.query_one(CurvePlot)
        like = [
            one
            for one in found
            if (one.identity.tier, one.identity.mode, one.identity.concurrency)
            == (work.tier, work.mode, work.concurrency)
            and (axis == "actions" or one.identity.actions == line.entries[0].row.identity.actions)
        ]
        marks: list[float] = [work.actions if axis == "actions" else answered.demand.workers]
        if axis == "actions":
            at = crossings(line)
            marks += [crossing.at.actions for crossing in at if crossing.at.actions]
            told = break_even_words(line, at)
        else:
            dearest = max(line.entries, key=lambda entry: entry.amount.value if entry.amount else 0.0)
            marks += [most for curve in like if (most := knee(curve))]
            told = knee_words(like, dearest.row.label)
        title = f"{VALUES[axis]} over {axis} · {clean(f'{work.tier} {work.mode}')}"
        plot.border_title = Text(" · ".join(filter(None, [told, title])))
        plot.present(like[:MAX_CURVES], axis, marks, empty)
