"""A page of paragraphs, lists and tables: as Markdown for a forge, or wrapped for a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from taxtui.report.formats import Section, markdown_tables, plain_tables
from taxtui.terminal_text import clean, wrap

_SIGNS: Final = re.compile(r"[<*]|(?<!\w)_|_(?!\w)")
"""Characters with a meaning in Markdown; an underscore inside a word or an address is plain."""
MOST_COLUMNS: Final = 80
"""Maximum width of paragraphs and lists in a terminal."""


class Items(NamedTuple):
    """A list."""

    texts: Sequence[str]
    numbered: bool = False


class Code(NamedTuple):
    """A command line."""

    text: str


Block = str | Items | Code | Section
"""A paragraph, a list, a command line or a table."""


class Page(NamedTuple):
    """A title, paragraphs, and parts: heading → blocks."""

    title: str
    lead: Sequence[str]
    parts: Mapping[str, Sequence[Block]]


def to_markdown(page: Page) -> str:
    """Return the page as Markdown."""
    texts = [f"# {_escape(page.title)}", *map(_markdown, page.lead)]
    for heading, blocks in page.parts.items():
        texts += [f"## {_escape(heading)}", *map(_markdown, blocks)]
    return "\n\n".join(texts)


def _markdown(block: Block) -> str:
    if isinstance(block, str):
        return _escape(block)
    if isinstance(block, Code):
        return f"```sh\n{clean(block.text)}\n```"
    if isinstance(block, Items):
        marks = [f"{number}." if block.numbered else "-" for number in range(1, len(block.texts) + 1)]
        return "\n".join(f"{mark} {_escape(text)}" for mark, text in zip(marks, block.texts, strict=True))
    return markdown_tables.to_text([block])


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
    lines: list[str] = []
    for paragraph in (page.title, *page.lead):
        lines += [*_wrapped(paragraph, width), ""]
    for heading, blocks in page.parts.items():
        lines += [heading, "-" * min(width, len(heading)), ""]
        for block in blocks:
            lines += [*_terminal(block, width), ""]
    return "\n".join(lines).rstrip()


def _terminal(block: Block, width: int) -> Sequence[str]:
    if isinstance(block, str):
        return _wrapped(block, width)
    if isinstance(block, Code):
        return [f"  {clean(block.text)}"]  # one line, for copying
    if isinstance(block, Items):
        lines: list[str] = []
        for number, text in enumerate(block.texts, 1):
            mark = f"{number}. " if block.numbered else "- "
            first, *rest = _wrapped(text, min(width, MOST_COLUMNS) - len(mark))
            lines += [mark + first, *(" " * len(mark) + line for line in rest)]
        return lines
    return plain_tables.to_text([block], min(width, MOST_COLUMNS)).splitlines()


def _wrapped(text: str, width: int) -> Sequence[str]:
    return wrap(clean(text), min(width, MOST_COLUMNS), "")
