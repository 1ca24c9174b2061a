"""A report as Markdown, with all special characters escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taxtui.report.bars import Pen, draw
from taxtui.report.cells import text_of
from taxtui.report.formats import Report, Section
from taxtui.terminal_text import clean

WIDTH = 80
"""Columns of bars, which are in an unwrapped block of code."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>&|#~!]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
"""Characters with a meaning in Markdown; GitHub makes links of bare addresses too."""
_EMPHASIS = re.compile(r"[<*]|(?<!\w)_|_(?!\w)")
"""Tags and emphasis; an underscore inside a word or an address is plain."""
_BEGINS = re.compile(r"^\s*(?=[-+=]|\d+[.)]\s)(\d*)")
"""Beginning of a list or a heading."""


def render(report: Report) -> str:
    """Return the sections as Markdown."""
    return to_text(report.sections())


def to_text(sections: Sequence[Section]) -> str:
    """Return the sections; the second line of a cell follows in parentheses."""
    return "\n\n".join(_section(section) for section in sections)


def _section(section: Section) -> str:
    if section.bars is not None:
        return "\n".join(["```text", *draw(section.bars, WIDTH, Pen()), "```"])
    line = _linked if section.links else _line
    title = f"{'###' if section.head or section.notes else '#'} {_escape(section.title)}"
    blocks = [title] if section.title else []
    if section.head:
        rule = "|" + "|".join(["---", *("---:" for _ in section.head[1:])]) + "|"
        rows = (_row(list(map(text_of, row))) for row in section.rows)
        blocks.append("\n".join([_row(section.head), rule, *rows]))
    if section.command:
        blocks.append(f"```sh\n{section.command}\n```")
    elif section.title or section.head:
        blocks.append("\n".join(f"- {line(note)}" for note in section.notes))
    else:
        blocks += map(line, section.notes)
    return "\n\n".join(filter(None, blocks))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_one_line(cell) for cell in cells) + " |"


def _one_line(cell: str) -> str:
    first, _, second = cell.partition("\n")
    return _escape(f"{first} ({second})" if second else first)


def _line(text: str) -> str:
    return _BEGINS.sub(r"\1\\", _escape(text))


def _linked(text: str) -> str:
    """Escape tags and emphasis only; text between backticks stays code."""
    parts = clean(text).split("`")
    if len(parts) % 2 == 0:
        parts = ["'".join(parts)]
    return "`".join(part if number % 2 else _EMPHASIS.sub(r"\\\g<0>", part) for number, part in enumerate(parts))


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", clean(text))
