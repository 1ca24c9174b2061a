"""The content of a report and its output formats: one file and one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from taxtui.report.bars import BarChart
    from taxtui.report.cells import Content


class Section(NamedTuple):
    """A table of typed cells, or without a head a title with a list, or prose. A text may have two lines."""

    title: str
    head: list[str]
    rows: Sequence[Sequence[Content]]
    notes: list[str]
    bars: BarChart | None = None  # drawn below the notes, for people only
    amounts: Sequence[str] = ()  # names of the amounts of a group, for a page that gives each a column
    links: bool = False  # addresses in the notes are links, and text between backticks is code

    @property
    def items(self) -> bool:
        """Whether the notes are a list."""
        return bool(self.title and not self.head)

    @property
    def command(self) -> str:
        """The command line, if this is the only note, between backticks; else ""."""
        note = clean(self.notes[0]) if self.links and len(self.notes) == 1 else ""
        return note[1:-1] if len(note) > 2 and note[0] == note[-1] == "`" else ""


class Report(NamedTuple):
    """One content for people and for programs; each format calls only the function for its audience."""

    sections: Callable[[], Sequence[Section]]
    records: Callable[[], Sequence[dict[str, Any]]] | None = None  # plain data, a mapping per row; None: for people
    lines: Callable[[], str] | None = None  # a text for terminals, instead of the sections


class Format(NamedTuple):
    """An output format. ``home``: module with ``render(report)``, imported on first use."""

    people: bool  # reads sections, not records
    home: str

    def render(self, report: Report) -> str:
        """Return the whole text without a final line break."""
        text: str = import_module(self.home).render(report)
        return text


BY_NAME: Final = {
    "table": Format(True, "taxtui.report.formats.plain_tables"),
    "markdown": Format(True, "taxtui.report.formats.markdown_tables"),
    "csv": Format(False, "taxtui.report.formats.csv_rows"),
    "json": Format(False, "taxtui.report.formats.json_rows"),
}
"""Value of ``--format`` → format, the default first."""
NAMES: Final = tuple(BY_NAME)
