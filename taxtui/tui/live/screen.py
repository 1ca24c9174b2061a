"""Live: a run as it happens, or a recording played back: fold what the file has grown by, then paint."""

from __future__ import annotations

import dataclasses
import shlex
import time
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer
from textual.widgets import Input, Static

from costmodel import SourceError
from taxtui.live.catalogue import shown
from taxtui.live.cell_state import FACETS
from taxtui.live.state import LogLine
from taxtui.terminal_text import clean
from taxtui.tui import actions
from taxtui.tui.dialogs import Confirm, copy
from taxtui.tui.fields import FilterField
from taxtui.tui.ladder_plot import LadderPlot
from taxtui.tui.lists import CursorList
from taxtui.tui.live.charts import EcdfPlot, HistogramPlot, paint_charts, paint_ladder, paint_overlay, paint_phases
from taxtui.tui.live.feed import BUDGET_S, Feed, RunFeed
from taxtui.tui.live.panels import CellTable, LogView, PhaseBars, ProgressBars
from taxtui.tui.live.playback import PlaybackScreen, ReplayBar
from taxtui.tui.live.replay import Standing
from taxtui.tui.live.summary import last_lines, status
from taxtui.tui.numbered_screen import TopBar

LIVE_S: Final = 1 / 4  # between looks at what is being measured
CPU_SHARE: Final = 1 / 40
"""Share of a core for frames during a measurement: a frame makes a simultaneous action slower.

    To keep p95 unchanged, fewer than one action in twenty may coincide with a frame.
"""
RARELY_S: Final = 1.5  # between frames, however dear they are
REPLAY_S: Final = 1 / 10
LOG: Final = "log · enter timeline · / filter, such as error"
NOTHING: Final = """\
Nothing to watch yet.

  1   set up a run, then ctrl+r to launch it
  5   choose a recording, then enter to watch it again"""


class LiveScreen(PlaybackScreen):
    """Everything shown comes from one ``RunState``: the feed's, or a frozen copy of it."""

    scope = "live"
    BINDINGS: ClassVar[list[BindingType]] = [
        # a list that scrolls sideways would take the arrows for itself
        dataclasses.replace(binding, priority=binding.action.startswith("adjust"))
        for binding in actions.bindings("live")
    ]
    AUTO_FOCUS = "#cells"

    def __init__(self) -> None:
        super().__init__()
        self.failure = ""
        self.facet = 0
        self.picture = ""  # the chosen picture; "": the first of those that there are
        self._concluded = False
        self._timer: Timer | None = None
        self._next: Timer | None = None  # where there is more to fold than one advance may
        self._frame_s = 0.0
        self._due_s = 0.0  # on the clock, when the share has paid for the last frame
        self._painted: Standing | None = None  # where a replay stood in the last frame
        self.pictures = ["chart"]

    def contents(self) -> ComposeResult:
        """Progress, charts, cells, phases, log; the stylesheet lays them out for the size there is."""
        yield Static(NOTHING, id="nothing", markup=False)
        yield ProgressBars(id="progress")
        with Container(id="body"):
            yield LadderPlot(id="ladder")
            yield HistogramPlot(id="chart")
            yield HistogramPlot(id="other")
            yield EcdfPlot(id="overlay")
            yield CellTable(id="cells")
            yield PhaseBars(id="phases")
            with Vertical(id="logpane"):
                yield LogView(id="log")
                yield FilterField(id="filter", placeholder="show only lines that contain …", compact=True)
        yield ReplayBar(id="replay")
        yield Static("", id="next", markup=False)

    def on_mount(self) -> None:
        self.query_one("#cells").border_title = Text("cells · ↑↓ choose · [ ] duration · v view")
        self.query_one("#log").border_title = LOG
        if self.feed is not None:
            self.follow(self.feed)

    def on_resize(self) -> None:
        self.call_after_refresh(self.paint)

    @property
    def running(self) -> bool:
        return self.feed is not None and self.feed.live and not self.feed.over

    @property
    def over(self) -> bool:
        """Nothing more will come; a replay can still be taken back."""
        return self._concluded or (self.replay is not None and self.replay.over)

    def arrive(self) -> None:
        if self.taxtui.feed and self.taxtui.feed is not self.feed:
            self.follow(self.taxtui.feed)
        else:
            self.paint()

    def follow(self, feed: Feed) -> None:
        if self.feed is not None and self.feed is not feed:
            self._show_whole_log()  # what was filtered in another recording
        self.feed = feed
        self.failure, self._concluded, self._painted, self._due_s = "", False, None, 0.0
        if not self.is_mounted:
            return
        for timer in (self._timer, self._next):
            if timer:
                timer.stop()
        self._next = None
        self.set_class(self.replay is not None, "-replay")
        self._timer = self.set_interval(LIVE_S, self.look) if feed.live else self.set_interval(REPLAY_S, self.tick)
        self.tick()
        self.refresh_bindings()

    def look(self) -> None:
        """Fold; paint if frames are within their share. Keys and the end are never delayed."""
        if time.monotonic() < self._due_s:
            self.advance()
        else:
            self.tick()

    def tick(self) -> None:
        """Fold, then paint; skip a replay's frame after a slow one."""
        self.hurried = False
        self.advance()
        if self.replay is not None and self._frame_s > REPLAY_S / 2:
            self._frame_s = 0.0
        elif self.is_current:
            self._show_news()

    def restyle(self) -> None:
        self.paint()

    def _show_news(self) -> None:
        """Paint a replay only after a change; during a seek, only its bar."""
        if self.replay is None:
            self.paint()
        elif self.replay.seeking:
            self.query_one(ReplayBar).show(self.replay.standing)
        elif self.replay.standing != self._painted:
            self.paint()

    def advance(self) -> None:
        """Fold new events; the rest follows shortly, after pending keys."""
        if self._next:
            self._next.stop()
            self._next = None
        if self.feed is None or self._concluded:
            return
        sought = self.replay is not None and self.replay.seeking
        try:
            behind = self.feed.advance()
        except SourceError as error:
            self.failure = clean(str(error))
            behind = False
        if behind:
            self._next = self.set_timer(BUDGET_S / 3, self.advance)
        elif self.failure or (self.feed.over and not self.replay):
            self._conclude(self.feed)
        if self.replay and self.replay.refusal:
            self.notify(self.replay.refusal, severity="error")
            self.replay.refusal = ""
        if sought and self.replay and not self.replay.seeking and self.is_current:
            self.paint()  # there: no need to wait for the next frame

    def _conclude(self, feed: Feed) -> None:
        self._concluded = True
        if self._timer:
            self._timer.stop()  # there is nothing more to look at
        if isinstance(feed, RunFeed) and not feed.state.run_id:
            self.failure = "\n".join(["The run did not start:", "", *feed.complaint])
        elif isinstance(feed, RunFeed) and feed.state.outcome is None:
            unix_ns = feed.state.now_unix_ns
            feed.state.log.extend(LogLine(unix_ns, "error", line) for line in ["the run broke off", *feed.complaint])
        self.refresh_bindings()
        self.paint()
        self.taxtui.run_ended()

    def paint(self) -> None:
        began_s, began_cpu_s = time.monotonic(), time.process_time()
        feed = self.feed
        self.set_class(feed is None or bool(self.failure), "-nothing")
        nothing = self.query_one("#nothing", Static)
        if nothing.display:
            nothing.update(self.failure or NOTHING)
        if feed is None:
            return
        state = feed.state
        cells, dark = list(state.cells.values()), self.app.current_theme.dark
        table = self.query_one("#cells", CellTable)
        table.present(cells, FACETS[self.facet])
        self.query_one("#progress", ProgressBars).present(state, over=self.over)
        overlay = self.query_one("#overlay", EcdfPlot)
        several = paint_overlay(overlay, state, table.chosen, self.facet)
        climbs = paint_ladder(self.query_one("#ladder", LadderPlot), state, table.chosen)
        self.pictures = [*(["ladder"] if climbs else []), "chart", *(["overlay"] if several else [])]
        picture = self.picture if self.picture in self.pictures else self.pictures[0]
        self.set_class(several, "-several")
        self.set_class(picture == "ladder", "-ladder")
        self.set_class(picture == "overlay", "-overlaid")
        charts = self.query_one("#chart", HistogramPlot), self.query_one("#other", HistogramPlot)
        paint_charts(charts, state, table.chosen, self.facet, dark=dark, overlaid=overlay.display)
        paint_phases(self.query_one("#phases", PhaseBars), cells, table.chosen, dark=dark)
        self.query_one("#log", LogView).present(state)
        if self.replay:
            self._painted = self.replay.standing
            self.query_one(ReplayBar).show(self._painted)
        self.query_one(TopBar).say(status(state, feed, over=self.over, brief=self.size.width < 110))
        offer = self.query_one("#next", Static)
        offer.display = self.over and not self.failure
        offer.update(last_lines(state, feed), layout=False)
        self.call_after_refresh(self._measure, began_s, began_cpu_s)

    def _measure(self, began_s: float, began_cpu_s: float) -> None:
        now_s = time.monotonic()
        self._frame_s = now_s - began_s
        self._due_s = now_s + min((time.process_time() - began_cpu_s) / CPU_SHARE, RARELY_S)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "pause":
                return self.running or self.offers_replay("pause")
            case "cancel":
                return self.running
            case "adjust" | "go_to" | "faster":
                return self.offers_replay(action)
            case "copy" | "page" | "open" | "view" | "switch" | "filter":
                return self.feed is not None and not self.failure
        return True

    @on(CursorList.Moved)
    def repaint(self) -> None:
        self.paint()

    def action_pause(self) -> None:
        """Launch no more trials, or launch again; a replay's clock stops."""
        super().action_pause()
        if isinstance(self.feed, RunFeed):
            self.feed.pause()
            self.paint()

    @work
    async def action_cancel(self) -> None:
        body = "Trials in flight are cut off; every sandbox is removed and the recording stays readable."
        if await self.app.push_screen_wait(Confirm("Cancel the run?", body, "Cancel it", "Go on")):
            self.cancel()

    def cancel(self) -> None:
        if isinstance(self.feed, RunFeed) and self.running:
            self.feed.cancel()
            self.paint()

    def action_switch(self, step: int) -> None:
        self.facet = (self.facet + step) % len(FACETS)
        self.paint()

    def action_view(self) -> None:
        place = self.pictures.index(self.picture) if self.picture in self.pictures else 0
        self.picture = self.pictures[(place + 1) % len(self.pictures)]
        self.paint()

    @on(Input.Changed, "#filter")
    def filtered(self, event: Input.Changed) -> None:
        self.query_one("#log", LogView).wanted = event.value
        self.paint()

    def focus_table(self) -> None:
        self.query_one("#log").focus()

    def _show_whole_log(self) -> None:
        self.query_one(FilterField).forget()
        self.query_one("#log", LogView).wanted = ""

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
            command = shlex.join(["taxtui", "report", shown(self.feed.path)])
            copy(self.app, command, command)

    def action_page(self) -> None:
        if self.feed:
            self.paths = (self.feed.path,)
            self.write_page(["report", str(self.feed.path)])
