"""A page of paragraphs, lists and tables: as Markdown for a forge, or wrapped for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from taxtui.report.cells import Content
from taxtui.report.formats import Section, markdown_tables, plain_tables
from taxtui.terminal_text import clean, wrap

_SIGNS: Final = re.compile(r"[<*]|(?<!\w)_|_(?!\w)")
"""Characters with a meaning in Markdown; an underscore inside a word or an address is plain."""
MOST_COLUMNS: Final = 80
"""Maximum width of paragraphs and lists in a terminal."""


class Paragraph(NamedTuple):
    """Sentences."""

    text: str


class Items(NamedTuple):
    """A list."""

    texts: tuple[str, ...]
    numbered: bool = False


class Code(NamedTuple):
    """A command line."""

    text: str


class TextTable(NamedTuple):
    """Typed cells; the second line of a cell goes into parentheses in Markdown."""

    head: tuple[str, ...]
    rows: tuple[tuple[Content, ...], ...]


Block = Paragraph | Items | Code | TextTable


class PagePart(NamedTuple):
    """A heading and the blocks under it."""

    heading: str
    blocks: tuple[Block, ...]


class Page(NamedTuple):
    """A title, blocks, and parts; parts without blocks are not printed."""

    title: str
    lead: tuple[Block, ...]
    parts: tuple[PagePart, ...]


def to_markdown(page: Page) -> str:
    """Return the page as Markdown."""
    texts = [f"# {_escape(page.title)}", *map(_markdown, page.lead)]
    for part in page.parts:
        if part.blocks:
            texts += [f"## {_escape(part.heading)}", *map(_markdown, part.blocks)]
    return "\n\n".join(texts)


def _markdown(block: Block) -> str:
    if isinstance(block, Paragraph):
        return _escape(block.text)
    if isinstance(block, Code):
        return f"```sh\n{clean(block.text)}\n```"
    if isinstance(block, Items):
        marks = [f"{number}." if block.numbered else "-" for number in range(1, len(block.texts) + 1)]
        return "\n".join(f"{mark} {_escape(text)}" for mark, text in zip(marks, block.texts, strict=True))
    return markdown_tables.to_text([Section("", list(block.head), [list(row) for row in block.rows], [])])


def _escape(text: str) -> str:
    """Escape tags and emphasis of Markdown; text between backticks stays code."""
    parts = clean(text).split("`")
    if len(parts) % 2 == 0:
        parts = ["'".join(parts)]
    for number in range(0, len(parts), 2):
        parts[number] = _SIGNS.sub(r"\\\g<0>", parts[number])
    return "`".join(parts)


def to_terminal(page: Page, width: int) -> str:
    """Return the page for a terminal of this width, at most 80 columns wide."""
    lines = [*_wrapped(page.title, width), ""]
    for block in page.lead:
        lines += [*_terminal(block, width), ""]
    for part in page.parts:
        if part.blocks:
            lines += [part.heading, "-" * min(width, len(part.heading)), ""]
            for block in part.blocks:
                lines += [*_terminal(block, width), ""]
    return "\n".join(lines).rstrip()


def _terminal(block: Block, width: int) -> Sequence[str]:
    if isinstance(block, Paragraph):
        return _wrapped(block.text, width)
    if isinstance(block, Code):
        return [f"  {clean(block.text)}"]  # one line, for copying
    if isinstance(block, Items):
        lines: list[str] = []
        for number, text in enumerate(block.texts, 1):
            mark = f"{number}. " if block.numbered else "- "
            first, *rest = _wrapped(text, min(width, MOST_COLUMNS) - len(mark))
            lines += [mark + first, *(" " * len(mark) + line for line in rest)]
        return lines
    section = Section("", list(block.head), [list(row) for row in block.rows], [])
    return plain_tables.to_text([section], min(width, MOST_COLUMNS)).splitlines()


def _wrapped(text: str, width: int) -> Sequence[str]:
    return wrap(clean(text), min(width, MOST_COLUMNS), "")
