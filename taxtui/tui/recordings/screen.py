"""Recordings: list, open, project or compare the recordings of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Static

from costmodel import SourceError
from taxtui.live import catalogue
from taxtui.live.catalogue import HOPELESS, CatalogueEntry, Listing, path_text
from taxtui.terminal_text import clean
from taxtui.tui import actions, units
from taxtui.tui.background import Newest
from taxtui.tui.command_dialog import compare_with_another
from taxtui.tui.dialogs import copy
from taxtui.tui.lists import CursorList
from taxtui.tui.numbered_screen import NumberedScreen, TopBar
from taxtui.tui.recordings.list import RecordingList, facts

RUNNING_S: Final = 3.0  # between looks at the folder during a measurement
HOW_TO: Final = """\
No recordings yet.

  1                set up a run, then ctrl+r to launch it
  taxtui run       measure without this interface
  r                look again"""
KEYS: Final = "3 results · 4 projection · enter open · d diff"
NO_USER_RECORDING: Final = "only shipped recordings yet: 1, then ctrl+r, measures"


class RecordingsScreen(NumberedScreen):
    """The list, and the facts of the recording under the cursor."""

    scope = "recordings"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("recordings")]
    AUTO_FOCUS = "#recordings"

    def __init__(self) -> None:
        super().__init__()
        self.listing: Listing | None = None

    def contents(self) -> ComposeResult:
        yield Static(HOW_TO, id="how-to", markup=False)
        with Vertical(id="catalogue"):
            yield RecordingList(id="recordings")
            yield Static("", id="facts", markup=False)

    def on_mount(self) -> None:
        self._scanner: Newest[None, Listing] = Newest(lambda _: [self._scan()], self._listed, self._complain, on=self)
        self.set_interval(RUNNING_S, self._look_again)

    def on_unmount(self) -> None:
        self._scanner.close()

    def arrive(self) -> None:
        self.rescan()

    def rescan(self) -> None:
        self._scanner.ask(None)

    def _scan(self) -> Listing:
        """List the recordings, in the thread of the scanner; unchanged files are not read again."""
        feed, listing = self.taxtui.feed, self.listing
        entries = listing.entries if listing else ()
        return catalogue.scan(feed.path if feed else None, running=self.taxtui.running, previous=entries)

    def _look_again(self) -> None:
        if self.is_current and self.listing and any(entry.state == "running" for entry in self.listing.entries):
            self.rescan()

    def _listed(self, listing: Listing) -> None:
        before = [self.chosen.path] if self.chosen else self.taxtui.subject()
        self.listing = listing
        self.paint()
        if before:
            self._put_on(before[0])
        self.refresh_bindings()

    @property
    def entries(self) -> Sequence[CatalogueEntry]:
        return self.listing.entries if self.listing else ()

    @property
    def chosen(self) -> CatalogueEntry | None:
        return self.query_one(RecordingList).chosen

    def paint(self) -> None:
        if self.listing is None:
            return
        everything, listed = self.entries, self.query_one(RecordingList)
        self.set_class(not everything, "-nothing")
        how_to = "\n\n".join(filter(None, [self.listing.problem, HOW_TO]))
        self.query_one("#how-to", Static).update(how_to)
        listed.present(everything)
        folder = f"{path_text(self.listing.folder)}/" if self.listing.folder else "recordings"
        hint = KEYS if any(not entry.shipped for entry in everything) else NO_USER_RECORDING
        listed.entitle(Text(f"{folder} · {self.listing.problem or hint}"))
        self.query_one(TopBar).say(self._status(everything))
        self._describe()

    def _status(self, entries: Sequence[CatalogueEntry]) -> Text:
        parts = [f"{len(entries)} recordings" if len(entries) != 1 else "1 recording"]
        parts.append(units.size(sum(entry.size_bytes for entry in entries)))
        return Text(" · ".join(parts))

    @on(CursorList.Moved)
    def _describe(self) -> None:
        """Show the facts of the recording under the cursor."""
        if entry := self.chosen:
            self.query_one("#facts", Static).update(facts(entry))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("open", "page", "diff", "copy"):
            return self.listing is not None and bool(self.listing.entries)
        return True

    def _put_on(self, path: Path) -> None:
        """Put the cursor on a recording."""
        entries = self.entries
        number = next((number for number, entry in enumerate(entries) if catalogue.same(entry.path, path)), None)
        if number is not None:
            self.query_one(RecordingList).put(number)

    async def action_open(self) -> None:
        if entry := self._usable():
            try:
                await self.taxtui.replay(entry.path)
            except SourceError as error:
                self._complain(str(error))
                self.rescan()

    def leave(self, scope: actions.Scope) -> None:
        """Let Results and Projection show the recording under the cursor."""
        if scope in ("results", "projection") and (entry := self._usable()):
            self.taxtui.chosen = (entry.path,)

    def _usable(self) -> CatalogueEntry | None:
        """Return the recording under the cursor, if present and readable; else report the failure."""
        entry = self.chosen
        if entry is None:
            return None
        now = catalogue.inspect(entry.path)
        if now is not None and now.state not in HOPELESS:
            return entry
        if now is None:
            self._complain(f"{path_text(entry.path)} does not exist any more")
        else:
            state = {"newer version": "of a newer version", "unreadable": "not readable"}.get(now.state, now.state)
            self._complain(f"{path_text(entry.path)} is {state}" + (f": {now.detail}" if now.detail else ""))
        self.rescan()
        return None

    @work
    async def action_diff(self) -> None:
        if entry := self._usable():
            await compare_with_another(self, [entry.path])

    def action_page(self) -> None:
        if entry := self._usable():
            self.paths = (entry.path,)
            self.write_page(["report", str(entry.path)])

    def action_renew(self) -> None:
        self.rescan()

    def action_copy(self) -> None:
        if entry := self.chosen:
            command = catalogue.command(entry.path)
            copy(self.app, command, command)

    def _complain(self, reason: str) -> None:
        self.notify(clean(reason), severity="warning")
