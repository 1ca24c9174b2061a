"""The content of a report and its output formats: one file and one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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


class Report(NamedTuple):
    """One content for people and for programs; each format calls only the function for its audience."""

    sections: Callable[[], Sequence[Section]]
    records: Callable[[], Sequence[dict[str, Any]]] | None = None  # plain data, a mapping per row; None: for people
    lines: Callable[[], str] | None = None  # a text for terminals, instead of the sections


class Format(NamedTuple):
    """An output format. ``home``: module with ``render(report)``, imported on first use."""

    name: str  # for --format
    title: str  # among the texts that can be copied
    about: str
    people: bool  # reads sections, not records
    home: str

    def tells(self, report: Report) -> bool:
        return self.people or report.records is not None

    def render(self, report: Report) -> str:
        """Return the whole text without a final line break. Requires ``tells(report)``."""
        text: str = import_module(self.home).render(report)
        return text


FORMATS: Final = (
    Format("table", "text", "as the command line prints it", True, "taxtui.report.formats.plain_tables"),
    Format("markdown", "Markdown", "for an issue or a chat", True, "taxtui.report.formats.markdown_tables"),
    Format("csv", "CSV", "exact, a line per row", False, "taxtui.report.formats.csv_rows"),
    Format("json", "JSON", "exact, an object per row", False, "taxtui.report.formats.json_rows"),
)
"""All formats, the default first."""

BY_NAME: Final = {form.name: form for form in FORMATS}
NAMES: Final = tuple(BY_NAME)
"""Values of ``--format``."""
