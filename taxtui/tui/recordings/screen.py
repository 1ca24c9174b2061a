"""Recordings: what has been measured on this machine; replay, project, compare, verify or delete it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.widgets import Input, Static

from costmodel import SourceError
from taxtui.errors import TaxtuiError
from taxtui.live import catalogue
from taxtui.live.catalogue import HOPELESS, CatalogueEntry, Listing, shown
from taxtui.terminal_text import clean
from taxtui.tui import actions, units
from taxtui.tui.background import Newest
from taxtui.tui.command_dialog import compare_with_another
from taxtui.tui.dialogs import Confirm, copy
from taxtui.tui.fields import FilterField
from taxtui.tui.lists import CursorList
from taxtui.tui.numbered_screen import NumberedScreen, TopBar
from taxtui.tui.recordings.list import RecordingFacts, RecordingList

RUNNING_S: Final = 3.0  # between looks at the folder while something in it grows
HOW_TO: Final = """\
No recordings yet.

  1                set up a run, then ctrl+r to launch it
  taxtui run       measure without this interface
  r                look again"""
KEYS: Final = "3 results · 4 projection · enter replay · d diff · / filter"
NONE_OF_YOUR_OWN: Final = "no recording of your own yet: 1, then ctrl+r, measures"


class ListAsked(NamedTuple):
    """The inputs of the list."""

    feed: Path | None  # what Live shows
    running: bool
    entries: tuple[CatalogueEntry, ...]

    def look(self) -> Listing:
        return catalogue.scan(self.feed, running=self.running, known=self.entries)


class RecordingsScreen(NumberedScreen):
    """A list, and what is known of the recording under the cursor."""

    scope = "recordings"
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("recordings")]
    AUTO_FOCUS = "#recordings"

    def __init__(self) -> None:
        super().__init__()
        self.listing: Listing | None = None
        self.marks: set[Path] = set()
        self.wanted = ""

    def contents(self) -> ComposeResult:
        yield Static(HOW_TO, id="how-to", markup=False)
        with Container(id="catalogue"):
            with Vertical(id="shelf"):
                yield RecordingList(id="recordings")
                yield FilterField(id="wanted", placeholder="show only recordings that contain …", compact=True)
            with VerticalScroll(id="entry"):
                yield RecordingFacts(id="facts")

    def on_mount(self) -> None:
        self._scanner: Newest[ListAsked, Listing] = Newest(
            ListAsked.look, self._listed, lambda _, why: self._complain(why), on=self
        )
        self.query_one("#entry").border_title = "about this recording"
        self.set_interval(RUNNING_S, self._look_again)

    def on_unmount(self) -> None:
        self._scanner.close()

    def arrive(self) -> None:
        self.rescan()

    def restyle(self) -> None:
        self.paint()

    def rescan(self) -> None:
        feed = self.taxtui.feed
        entries = self.listing.entries if self.listing else ()
        self._scanner.ask(ListAsked(feed.path if feed else None, self.taxtui.running, entries))

    def _look_again(self) -> None:
        if self.is_current and self.listing and any(entry.state == "running" for entry in self.listing.entries):
            self.rescan()

    def _listed(self, request: ListAsked, listing: Listing) -> None:
        before = [self.chosen.path] if self.chosen else self.taxtui.subject()
        self.listing = listing
        self.marks &= {entry.path for entry in listing.entries}
        self.paint()
        if before:
            self._put_on(before[0])
        self.refresh_bindings()

    @property
    def entries(self) -> Sequence[CatalogueEntry]:
        everything = self.listing.entries if self.listing else ()
        return [entry for entry in everything if self.wanted.casefold() in entry.words.casefold()]

    @property
    def chosen(self) -> CatalogueEntry | None:
        return self.query_one(RecordingList).chosen

    def paint(self) -> None:
        if self.listing is None:
            return
        everything, listed = self.listing.entries, self.query_one(RecordingList)
        self.set_class(not everything, "-nothing")
        how_to = "\n\n".join(filter(None, [self.listing.problem, HOW_TO]))
        self.query_one("#how-to", Static).update(how_to)
        listed.empty = f"no recording contains {clean(self.wanted)}"
        listed.present(self.entries, self.marks)
        folder = f"{shown(self.listing.folder)}/" if self.listing.folder else "recordings"
        hint = KEYS if any(not entry.shipped for entry in everything) else NONE_OF_YOUR_OWN
        listed.entitle(Text(f"{folder} · {self.listing.problem or hint}"))
        self.query_one(TopBar).say(self._status(everything))
        self._describe()

    def _status(self, entries: Sequence[CatalogueEntry]) -> Text:
        parts = [f"{len(entries)} recordings" if len(entries) != 1 else "1 recording"]
        parts.append(units.size(sum(entry.size_bytes for entry in entries)))
        if self.marks:
            parts.append(f"{len(self.marks)} marked")
        return Text(" · ".join(parts))

    @on(CursorList.Moved)
    def _describe(self) -> None:
        """Show the facts of what is under the cursor."""
        entry = self.chosen
        facts = self.query_one(RecordingFacts)
        facts.display = entry is not None
        if entry:
            facts.present(entry)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("filter", "open", "mark", "page", "diff", "delete", "copy"):
            return self.listing is not None and bool(self.listing.entries)
        return True

    def _put_on(self, path: Path) -> None:
        """Keep the cursor on a recording wherever in the list it is now."""
        entries = self.entries
        number = next((number for number, entry in enumerate(entries) if catalogue.same(entry.path, path)), None)
        if number is not None:
            self.query_one(RecordingList).put(number)

    @on(RecordingList.Opened)
    async def action_open(self) -> None:
        entry = self.chosen
        if entry and self._usable([entry]):
            try:
                await self.taxtui.replay(entry.path)
            except SourceError as error:
                self._complain(str(error))
                self.rescan()

    @on(RecordingList.Marked)
    def action_mark(self) -> None:
        if entry := self.chosen:
            self.marks ^= {entry.path}
            self.paint()

    def leave(self, scope: actions.Scope) -> None:
        """Let Results and Projection show what is marked, else the recording under the cursor."""
        entries = self.listing.entries if self.listing else ()
        marked = [entry for entry in entries if entry.path in self.marks]
        wanted = marked or ([self.chosen] if self.chosen else [])
        if scope in ("results", "projection") and wanted and self._usable(wanted):
            self.taxtui.chosen = tuple(entry.path for entry in wanted)

    def _usable(self, entries: Sequence[CatalogueEntry]) -> bool:
        """Whether all are there and readable; else say which is not."""
        for entry in entries:
            now = catalogue.inspect(entry.path)
            if now is None:
                self._complain(f"{shown(entry.path)} is not there any more")
            elif now.state in HOPELESS:
                state = {"newer version": "of a newer version", "unreadable": "not readable"}.get(now.state, now.state)
                self._complain(f"{shown(entry.path)} is {state}" + (f": {now.detail}" if now.detail else ""))
            else:
                continue
            self.rescan()
            return False
        return True

    @work
    async def action_diff(self) -> None:
        entry = self.chosen
        if entry is not None and self._usable([entry]):
            await compare_with_another(self, [entry.path])

    def action_page(self) -> None:
        if (entry := self.chosen) and self._usable([entry]):
            self.paths = (entry.path,)
            self.write_page(["report", str(entry.path)])

    @work
    async def action_delete(self) -> None:
        entry = self.chosen
        if entry is None or self._must_stay(entry):
            return
        body = f"{shown(entry.path)}\n{units.size(entry.size_bytes)}, {entry.state}. It goes to the trash."
        if not await self.app.push_screen_wait(Confirm("Delete?", body, "Move to the trash", "Keep")):
            return
        if self._must_stay(entry):  # a run may have begun to write, or a replay to read, meanwhile
            return
        try:
            await asyncio.to_thread(discard, entry.path)
        except TaxtuiError as error:
            self._complain(str(error))
        else:
            self.taxtui.chosen = tuple(path for path in self.taxtui.chosen if path != entry.path)
            self.notify(f"{shown(entry.path)} is in the trash", timeout=3)
        self.rescan()

    def _must_stay(self, entry: CatalogueEntry) -> bool:
        """Whether the recording must not be deleted; notifies the reason."""
        feed = self.taxtui.feed
        on_live = feed is not None and catalogue.same(feed.path, entry.path)
        now = catalogue.inspect(entry.path, running=on_live and self.taxtui.running)
        if now is None:
            self._complain(f"{shown(entry.path)} is not there any more")
            self.rescan()
        elif entry.shipped:
            self._complain(f"{shown(entry.path)} came with taxtui; it is not deleted")
        elif now.state == "running":
            self._complain(f"{shown(entry.path)} is being written; it can be deleted once its run is over")
        elif on_live:
            self._complain(f"Live shows {shown(entry.path)}; replay another recording first, then delete it")
        else:
            return False
        return True

    @on(Input.Changed, "#wanted")
    def filtered(self, event: Input.Changed) -> None:
        """Filter while a person types; the cursor stays on its recording."""
        before = self.chosen
        self.wanted = event.value
        self.paint()
        if before:
            self._put_on(before.path)

    def focus_table(self) -> None:
        self.query_one(RecordingList).focus()

    def key_escape(self) -> None:
        """Drop the filter; without one, take all marks away."""
        if not self.query_one(FilterField).display:
            self.marks.clear()
        super().key_escape()
        self.paint()

    def action_renew(self) -> None:
        self.rescan()

    def action_copy(self) -> None:
        if entry := self.chosen:
            command = catalogue.command(entry.path)
            copy(self.app, command, command)

    def _complain(self, why: str) -> None:
        self.notify(clean(why), severity="warning")


def discard(path: Path) -> None:
    """Move a file to the desktop's trash. Raises ``TaxtuiError``: the file is still where it was."""
    from send2trash import send2trash

    try:
        send2trash(path)
    except OSError as error:
        raise TaxtuiError(f"{path.name} was not deleted: the trash refused it: {error.strerror or error}") from error
