"""What screens with tables share: keys that sort, filter and group whatever table is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.widgets import Input

from taxtui.live import catalogue
from taxtui.tui.answer.arranging import Arrangement
from taxtui.tui.answer.page_process import PageProcess
from taxtui.tui.lists.filter_field import FilterField
from taxtui.tui.numbered_screen import NumberedScreen


class ArrangedScreen(NumberedScreen):
    """Keeps the arrangement and its field; a subclass names the columns and shows its table anew."""

    def __init__(self) -> None:
        """The tables' own order."""
        super().__init__()
        self.arrangement = Arrangement()
        self.paths: tuple[Path, ...] = ()
        """The recordings that are shown."""
        self._page: Path | None = None  # that is being written

    @property
    def columns(self) -> Sequence[str]:
        """What the table that is shown can be sorted by."""
        raise NotImplementedError

    def rearrange(self) -> None:
        """Show the table as it is arranged now."""
        raise NotImplementedError

    def focus_table(self) -> None:
        """Give the focus to the table that is shown."""
        raise NotImplementedError

    def filter_field(self) -> ComposeResult:
        """The field for the filter, which is there while there is one."""
        yield FilterField(id="wanted", placeholder="show only rows that contain …", compact=True)

    def arrange_anew(self) -> None:
        """What was asked of another recording's tables is not asked of this one's."""
        self.arrangement = Arrangement()
        self.query_one(FilterField).forget()

    def action_sort(self) -> None:
        """By the next column; behind the last in the table's own order."""
        self.arrangement = self.arrangement.next_column(len(self.columns))
        self.rearrange()

    def action_reverse(self) -> None:
        """The other way round; what is not sorted yet, by its first column."""
        column = self.arrangement.column or 0
        self.arrangement = self.arrangement._replace(column=column, descending=not self.arrangement.descending)
        self.rearrange()

    def action_group(self) -> None:
        """Rows of one work together, those of one substrate, or in the table's own order."""
        self.arrangement = self.arrangement.next_group()
        self.rearrange()

    def action_filter(self) -> None:
        """Type what rows must contain."""
        self.query_one(FilterField).open()

    @on(Input.Changed, "#wanted")
    def filtered(self, event: Input.Changed) -> None:
        """Filter while typing."""
        self.arrangement = self.arrangement._replace(wanted=event.value)
        self.rearrange()

    @on(Input.Submitted, "#wanted")
    def filter_done(self) -> None:
        """Keep the filter; an empty one goes away."""
        self.query_one(FilterField).settle()
        self.focus_table()

    @work
    async def write_page(self, command: Sequence[str]) -> None:
        """Write what a command of taxtui says as a page, next to the recording under the first free name.

        It is drawn in a process of its own: drawing takes seconds, and would keep the interface from what is pressed.
        """
        if self._page is not None:
            self.notify(f"{self._page} is being written", severity="warning")
            return
        if not self.paths:
            self.notify("there is no recording yet; 1 measures, 5 lists what there is", severity="warning")
            return
        try:
            self._page = catalogue.beside(self.paths[0], ".html")
            self.notify(f"{self._page} …", title="Writing a page")
            refused = await PageProcess([*command, "--html", str(self._page)]).refusal()
        except OSError as error:  # no more processes
            refused = str(error)
        told, self._page = self._page, None
        if refused:
            self.notify(refused, title="No page", severity="error", timeout=10)
        else:
            self.notify(f"{told}", title="Page written", timeout=10)

    def key_escape(self) -> None:
        """Drop the filter."""
        if self.query_one(FilterField).drop():
            self.focus_table()
