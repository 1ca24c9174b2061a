"""Live: a measurement in progress, or a recording."""

from __future__ import annotations

import shlex
import time
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.timer import Timer
from textual.widgets import Static

from costmodel import SourceError
from taxtui.live.catalogue import path_text
from taxtui.live.cell_state import FACETS
from taxtui.live.state import LogLine
from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.dialogs import Confirm, copy
from taxtui.tui.lists import CursorList
from taxtui.tui.live.chart import Chart, paint_chart, paint_phases
from taxtui.tui.live.feed import BUDGET_S, RunFeed
from taxtui.tui.live.panels import CellTable, LogView, ProgressBars
from taxtui.tui.live.replay import Feed
from taxtui.tui.live.summary import last_lines, status
from taxtui.tui.numbered_screen import NumberedScreen, TopBar
from taxtui.tui.stacked_bars import StackedBars

LIVE_S: Final = 1 / 4
"""Seconds between looks at the recording."""
CPU_SHARE: Final = 1 / 40
"""Share of a core for frames during a measurement: a frame slows simultaneous actions.

To keep p95 unchanged, fewer than one action in twenty may coincide with a frame.
"""
MAX_FRAME_GAP_S: Final = 1.5
"""Longest wait between two frames."""
NOTHING: Final = """\
Nothing to watch yet.

  1   set up a run, then ctrl+r to launch it
  5   choose a recording, then enter to open it"""


class LiveScreen(NumberedScreen):
    """Progress, charts, cells, phases and log of the feed's ``RunState``."""

    scope = "live"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("live")]
    AUTO_FOCUS = "#cells"

    def __init__(self) -> None:
        super().__init__()
        self.feed: Feed | None = None
        self.failure = ""
        self.facet = 0
        self.over = False  # no more events will come
        self._timer: Timer | None = None
        self._rest: Timer | None = None  # for the rest of the events after an ``advance``
        self._due_s = 0.0  # earliest time of the next frame

    def contents(self) -> ComposeResult:
        yield Static(NOTHING, id="nothing", markup=False)
        yield ProgressBars(id="progress")
        with Container(id="body"):
            yield Chart(id="chart")
            yield CellTable(id="cells")
            yield StackedBars(id="phases")
            yield LogView(id="log")
        yield Static("", id="next", markup=False)

    def on_mount(self) -> None:
        self.query_one("#cells").border_title = Text("cells · ↑↓ choose · [ ] duration")
        self.query_one("#log").border_title = "log · enter timeline"
        if self.feed is not None:
            self.follow(self.feed)

    def on_resize(self) -> None:
        self.call_after_refresh(self.paint)

    @property
    def running(self) -> bool:
        return self.taxtui.running

    def arrive(self) -> None:
        if self.taxtui.feed and self.taxtui.feed is not self.feed:
            self.follow(self.taxtui.feed)
        else:
            self.paint()

    def follow(self, feed: Feed) -> None:
        """Show this feed."""
        self.feed = feed
        self.failure, self.over, self._due_s = "", False, 0.0
        if not self.is_mounted:
            return
        for timer in (self._timer, self._rest):
            if timer:
                timer.stop()
        self._rest = None
        self._timer = self.set_interval(LIVE_S, self.look)
        self.look()
        self.refresh_bindings()

    def look(self) -> None:
        """Apply new events, and paint if frames are within their share of a core. Keys are never delayed."""
        self.advance()
        if self.is_current and self.feed and time.monotonic() >= self._due_s:
            self.paint()

    def advance(self) -> None:
        """Apply new events; the rest follows after pending keys."""
        if self._rest:
            self._rest.stop()
            self._rest = None
        if self.feed is None or self.over:
            return
        try:
            more = self.feed.advance()
        except SourceError as error:
            self.failure = clean(str(error))
            more = False
        if more:
            self._rest = self.set_timer(BUDGET_S / 3, self.advance)
        elif self.failure or self.feed.over:
            self._conclude(self.feed)

    def _conclude(self, feed: Feed) -> None:
        self.over = True
        if self._timer:
            self._timer.stop()
        if isinstance(feed, RunFeed) and not feed.state.run_id:
            self.failure = "\n".join(["The run did not start:", "", *feed.complaint])
        elif isinstance(feed, RunFeed) and feed.state.outcome is None:
            unix_ns = feed.state.now_unix_ns
            feed.state.log.extend(LogLine(unix_ns, "error", line) for line in ["the run broke off", *feed.complaint])
        self.refresh_bindings()
        self.paint()
        self.taxtui.run_ended()

    def paint(self) -> None:
        began_cpu_s = time.process_time()
        feed = self.feed
        self.set_class(feed is None or bool(self.failure), "-nothing")
        nothing = self.query_one("#nothing", Static)
        if nothing.display:
            nothing.update(self.failure or NOTHING)
        if feed is None:
            return
        state, facet = feed.state, FACETS[self.facet]
        cells = list(state.cells.values())
        table = self.query_one("#cells", CellTable)
        table.present(cells, facet)
        self.query_one("#progress", ProgressBars).present(state, over=self.over)
        paint_chart(self.query_one(Chart), state, table.chosen, facet)
        paint_phases(self.query_one("#phases", StackedBars), cells, table.chosen)
        self.query_one("#log", LogView).present(state)
        self.query_one(TopBar).say(status(state, feed, over=self.over, brief=self.size.width < 130))
        offer = self.query_one("#next", Static)
        offer.display = self.over and not self.failure
        offer.update(last_lines(state, feed), layout=False)
        if feed.live:
            self.call_after_refresh(self._ration, began_cpu_s)

    def _ration(self, began_cpu_s: float) -> None:
        """Postpone the next frame until ``CPU_SHARE`` has paid for this frame."""
        cost_s = (time.process_time() - began_cpu_s) / CPU_SHARE
        self._due_s = time.monotonic() + min(cost_s, MAX_FRAME_GAP_S)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "pause":
                return self.feed is not None and not self.over
            case "cancel":
                return self.running
            case "copy" | "page" | "open" | "switch":
                return self.feed is not None and not self.failure
        return True

    @on(CursorList.Moved)
    def repaint(self) -> None:
        self.paint()

    def action_pause(self) -> None:
        """Start no more trials, or continue; for a replay, stop or start the clock."""
        if self.feed:
            self.feed.pause()
            self.paint()

    @work
    async def action_cancel(self) -> None:
        body = "Trials in flight are cut off; every sandbox is removed and the recording stays readable."
        agreed = await self.app.push_screen_wait(Confirm("Cancel the run?", body, "Cancel it", "Go on"))
        if agreed and isinstance(self.feed, RunFeed) and self.running:
            self.feed.cancel()
            self.paint()

    def action_switch(self, step: int) -> None:
        self.facet = (self.facet + step) % len(FACETS)
        self.paint()

    @work
    async def action_open(self) -> None:
        from taxtui.tui.trial import show_slowest, show_trial

        log, cell = self.query_one("#log", LogView), self.query_one("#cells", CellTable).chosen
        if self.feed is None:
            return
        if log.has_focus and log.chosen is not None and log.chosen.trial is not None:
            await show_trial(self, self.feed.path, log.chosen.trial)
        elif cell is not None:
            title = f"{cell.label} {cell.workload} {cell.mode}"
            await show_slowest(self, [self.feed.path], lambda candidate: candidate.id == cell.id, title)

    def action_copy(self) -> None:
        if self.feed:
            command = shlex.join(["taxtui", "report", path_text(self.feed.path)])
            copy(self.app, command, command)

    def action_page(self) -> None:
        if self.feed:
            self.paths = (self.feed.path,)
            self.write_page(["report", str(self.feed.path)])
