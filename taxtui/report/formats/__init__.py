"""The content of a report, and the table of its formats: one file and one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from taxtui.report.bars import BarChart
    from taxtui.report.cells import Content


class Section(NamedTuple):
    """One table of typed cells; a text may have two lines. Without a head: prose."""

    title: str
    head: list[str]
    rows: Sequence[Sequence[Content]]
    notes: list[str]
    bars: BarChart | None = None  # drawn below the notes, for people only
    amounts: Sequence[str] = ()  # names of the amounts of a group, for a page that gives each a column


class Report(NamedTuple):
    """The same content for people and for programs; a format asks for what it needs, and only that is made."""

    sections: Callable[[], Sequence[Section]]
    records: Callable[[], Sequence[dict[str, Any]]] | None = None  # plain data, a mapping per row; None: for people
    lines: Callable[[], str] | None = None  # for a terminal, where tables would not do


class Format(NamedTuple):
    """A way to tell a report. ``home`` is the module with its ``render(report)``, imported on first use."""

    name: str  # for --format
    title: str  # among the texts that can be copied
    about: str
    people: bool  # reads sections, not records
    home: str

    def tells(self, report: Report) -> bool:
        return self.people or report.records is not None

    def render(self, report: Report) -> str:
        """The whole text, without a line's end at its end. Only where this ``tells`` the report."""
        text: str = import_module(self.home).render(report)
        return text


FORMATS: Final = (
    Format("table", "text", "as the command line prints it", True, "taxtui.report.formats.plain_tables"),
    Format("markdown", "Markdown", "for an issue or a chat", True, "taxtui.report.formats.markdown_tables"),
    Format("csv", "CSV", "exact, a line per row", False, "taxtui.report.formats.csv_rows"),
    Format("json", "JSON", "exact, an object per row", False, "taxtui.report.formats.json_rows"),
)
"""Every format; the first is what is printed unless another is asked for."""

BY_NAME: Final = {one.name: one for one in FORMATS}
NAMES: Final = tuple(BY_NAME)
"""What ``--format`` takes."""
