"""Live: a run as it happens, or a recording played back: fold what the file has grown by, then paint."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.markup import escape
from textual.timer import Timer
from textual.widgets import Input, Static

from taxtui.cell_state import FACETS, CellState
from taxtui.errors import RecordingError
from taxtui.histogram import LogHistogram
from taxtui.state import LogLine, RunState
from taxtui.tui import actions
from taxtui.tui.colours import colour
from taxtui.tui.feed import BUDGET_S, Feed, ReplayFeed, RunFeed
from taxtui.tui.screens.dialogs import Confirm
from taxtui.tui.screens.numbered import NumberedScreen
from taxtui.tui.side_by_side import counterpart, same_workload, waiting
from taxtui.tui.summary import as_markdown, last_lines, status
from taxtui.tui.widgets.cell_table import CellTable, workload
from taxtui.tui.widgets.histogram_plot import HistogramPlot, view
from taxtui.tui.widgets.log_view import LogView
from taxtui.tui.widgets.phase_bars import PhaseBars, legend
from taxtui.tui.widgets.progress import ProgressBars
from taxtui.tui.widgets.top_bar import TopBar

LIVE_S: Final = 1 / 4  # between frames while something is being measured: at most a tenth of a core
REPLAY_S: Final = 1 / 10
ZOOMS: Final = 6
NOTHING: Final = """\
Nothing to watch yet.

  1            set up a run, then ctrl+r to launch it
  taxtui replay FILE   watch a recording again"""


class LiveScreen(NumberedScreen):
    """Everything shown comes from one ``RunState``: the feed's, or a frozen copy of it."""

    scope = "live"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("live")]
    AUTO_FOCUS = "#cells"

    def __init__(self) -> None:
        """Follow nothing yet."""
        super().__init__()
        self.feed: Feed | None = None
        self.frozen: RunState | None = None
        self.failure = ""
        self.facet = 0
        self.zoom = 0
        self._concluded = False
        self._timer: Timer | None = None
        self._frame_s = 0.0

    def contents(self) -> ComposeResult:
        """Progress, charts, cells, phases, log; the stylesheet lays them out for the size there is."""
        yield Static(NOTHING, id="nothing", markup=False)
        yield ProgressBars(id="progress")
        with Container(id="body"):
            yield HistogramPlot(id="chart")
            yield HistogramPlot(id="other")
            yield CellTable(id="cells")
            yield PhaseBars(id="phases")
            with Vertical(id="logpane"):
                yield LogView(id="log")
                yield Input(id="filter", placeholder="show only lines that contain …", compact=True)
        yield Static("", id="next", markup=False)

    def on_mount(self) -> None:
        """Name the panels."""
        self.query_one("#cells").border_title = "cells · ↑↓ choose · \\[ ] facet · -/+/a zoom"
        self.query_one("#log").border_title = "log · / filter · ! errors only"
        if self.feed is not None:
            self.follow(self.feed)

    @property
    def running(self) -> bool:
        """A run is going on that would have to be cancelled."""
        return self.feed is not None and self.feed.live and not self.feed.over

    def arrive(self) -> None:
        """As ``NumberedScreen.arrive``."""
        if self.taxtui.feed and self.taxtui.feed is not self.feed:
            self.follow(self.taxtui.feed)

    def follow(self, feed: Feed) -> None:
        """Watch this from now on."""
        self.feed = feed
        self.frozen, self.failure, self._concluded = None, "", False
        if not self.is_mounted:
            return
        if self._timer:
            self._timer.stop()
        self._timer = self.set_interval(LIVE_S if feed.live else REPLAY_S, self.tick)
        self.tick()
        self.refresh_bindings()

    def tick(self) -> None:
        """Fold, then paint; a frame is left out when the one before took more than half its time."""
        self.advance()
        period_s = LIVE_S if self.feed and self.feed.live else REPLAY_S
        if self._frame_s > period_s / 2:
            self._frame_s = 0.0
        elif self.is_current:
            self.paint()

    def advance(self) -> None:
        """Fold what is new. What is left goes on shortly, so that keys are answered in between."""
        if self.feed is None or self._concluded:
            return
        try:
            behind = self.feed.advance()
        except RecordingError as error:
            self.failure = str(error)
            behind = False
        if behind:
            self.set_timer(BUDGET_S / 3, self.advance)
        elif self.feed.over or self.failure:
            self._conclude(self.feed)

    def _conclude(self, feed: Feed) -> None:
        self._concluded = True
        if isinstance(feed, RunFeed) and not feed.state.run_id:
            self.failure = "\n".join(["The run did not start:", "", *feed.complaint])
        elif isinstance(feed, RunFeed) and feed.state.outcome is None:
            unix_ns = feed.state.now_unix_ns
            feed.state.log.extend(LogLine(unix_ns, "error", line) for line in ["the run broke off", *feed.complaint])
        self.refresh_bindings()
        self.paint()
        self.taxtui.run_ended()

    def paint(self) -> None:
        """Show the state there is, everywhere."""
        began_s = time.monotonic()
        feed = self.feed
        self.set_class(feed is None or bool(self.failure), "-nothing")
        nothing = self.query_one("#nothing", Static)
        if nothing.display:
            nothing.update(self.failure or NOTHING)
        if feed is None:
            return
        state = self.frozen or feed.state
        cells = list(state.cells.values())
        table = self.query_one("#cells", CellTable)
        table.present(cells, FACETS[self.facet])
        self.query_one("#progress", ProgressBars).present(state, over=self._concluded)
        self._paint_charts(state, cells, table.chosen)
        self._paint_phases(cells, table.chosen)
        self.query_one("#log", LogView).present(state)
        frozen, brief = self.frozen is not None, self.size.width < 110
        self.query_one(TopBar).say(status(state, feed, frozen=frozen, over=self._concluded, brief=brief))
        offer = self.query_one("#next", Static)
        offer.display = self._concluded and not self.failure
        offer.update(last_lines(state, feed), layout=False)
        self.call_after_refresh(self._painted, began_s)

    def _painted(self, began_s: float) -> None:
        self._frame_s = time.monotonic() - began_s

    def _paint_charts(self, state: RunState, cells: list[CellState], chosen: CellState | None) -> None:
        shown = [(chosen, self.facet), counterpart(chosen, cells, self.facet)]
        bounds = [view(cell.facets[FACETS[facet]], self.zoom) if cell else (1.0, 10.0) for cell, facet in shown]
        side_by_side = self.query_one("#other").display
        if (
            side_by_side
            and shown[0][1] == shown[1][1]
            and all(cell and cell.facets[FACETS[self.facet]].n for cell, _ in shown)
        ):
            both = (min(low for low, _ in bounds), max(high for _, high in bounds))
            bounds = [both, both]  # one axis, so that two substrates can be compared by eye
        for chart, (cell, facet), limits in zip(self.query(HistogramPlot), shown, bounds, strict=True):
            title = FACETS[facet].replace("_", " ")
            if cell is None:
                chart.show(title, LogHistogram(), "#999999", limits, waiting(state, None))
                continue
            zoom = f" · zoom {2**self.zoom}×" if self.zoom else ""
            chart.show(
                f"{title} · {escape(cell.label)} {workload(cell, cells)}{zoom}",
                cell.facets[FACETS[facet]],
                colour(cell.label, dark=self.app.current_theme.dark),
                limits,
                waiting(state, cell),
            )

    def _paint_phases(self, cells: list[CellState], chosen: CellState | None) -> None:
        bars = self.query_one("#phases", PhaseBars)
        like = [cell for cell in cells if chosen and same_workload(cell, chosen)]
        bars.present(like)
        bars.empty = "the mean time of a trial by phase, once the first has finished"
        name = f"phases of {workload(chosen, cells)}" if chosen else "phases"
        legends = legend(like, dark=self.app.current_theme.dark)
        bars.entitle(Text.assemble(name, " ·" if legends else "", legends).markup)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what can be done now is offered."""
        replay = isinstance(self.feed, ReplayFeed)
        match action:
            case "pause":
                return (self.running or replay) and not self._concluded
            case "cancel":
                return self.running
            case "step" | "faster":
                return replay and not self._concluded
            case "freeze" | "copy" | "export" | "facet" | "zoom" | "project":
                return self.feed is not None and not self.failure
        return True

    @on(CellTable.Chosen)
    def repaint(self) -> None:
        """Another cell, facet or zoom: show it at once."""
        self.paint()

    def action_freeze(self) -> None:
        """Hold the view, or let it go on."""
        if self.feed:
            self.frozen = None if self.frozen else self.feed.state.snapshot()
            self.paint()

    def action_pause(self) -> None:
        """Launch no more trials, or launch again; a replay's clock stops."""
        if isinstance(self.feed, RunFeed | ReplayFeed):
            self.feed.pause()
            self.paint()

    @work
    async def action_cancel(self) -> None:
        """Cancel the run after asking."""
        body = "Trials in flight are cut off; every sandbox is removed and the recording stays readable."
        if await self.app.push_screen_wait(Confirm("Cancel the run?", body, "Cancel it", "Go on")):
            self.cancel()

    def cancel(self) -> None:
        """Cancel the run."""
        if isinstance(self.feed, RunFeed) and self.running:
            self.feed.cancel()
            self.paint()

    def action_facet(self, step: int) -> None:
        """Another duration."""
        self.facet = (self.facet + step) % len(FACETS)
        self.paint()

    def action_zoom(self, step: int) -> None:
        """Narrower, wider, or (0) everything."""
        self.zoom = min(max(self.zoom + step, 0), ZOOMS) if step else 0
        self.paint()

    def action_faster(self, steps: int) -> None:
        """Another replay speed."""
        if isinstance(self.feed, ReplayFeed):
            self.feed.faster(steps)
            self.paint()

    def action_step(self) -> None:
        """One more trial of the replay."""
        if isinstance(self.feed, ReplayFeed):
            self.feed.step()
            self.paint()

    def action_filter(self) -> None:
        """Type what log lines must contain."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    @on(Input.Changed, "#filter")
    def filtered(self, event: Input.Changed) -> None:
        """Filter while typing."""
        self.query_one("#log", LogView).wanted = event.value
        self.paint()

    @on(Input.Submitted, "#filter")
    def filter_done(self) -> None:
        """Keep the filter; an empty one goes away."""
        field = self.query_one("#filter", Input)
        field.display = bool(field.value)
        self.query_one("#log").focus()

    def key_escape(self) -> None:
        """Drop the filter."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.query_one("#cells").focus()

    def action_errors_only(self) -> None:
        """Only errors and warnings, or everything."""
        log = self.query_one("#log", LogView)
        log.errors_only = not log.errors_only
        log.border_title = (
            "log · errors only · / filter · ! all" if log.errors_only else "log · / filter · ! errors only"
        )
        self.paint()

    def action_copy(self) -> None:
        """The table, as Markdown."""
        if self.feed:
            state = self.frozen or self.feed.state
            self.app.copy_to_clipboard(as_markdown(state, FACETS[self.facet]))
            self.notify(
                f"{FACETS[self.facet].replace('_', ' ')} of {len(state.cells)} cells, as Markdown", title="Copied"
            )

    def action_export(self) -> None:
        """This screen as an SVG beside the recording."""
        if self.feed:
            self.export(self.feed.path)

    async def action_project(self) -> None:
        """What any number of trajectories would cost."""
        if self.feed:
            await self.taxtui.look_at([self.feed.path], "projection")
