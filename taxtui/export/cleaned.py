"""Rows of a table with their texts fit for a screen: every exporter of rows takes them from here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from costmodel import tables
from taxtui.terminal_text import clean


def rows(paths: Sequence[Path], table: str) -> Iterator[list[int | str | bool | None]]:
    """As ``costmodel.tables.rows``; a character that a terminal would obey or hide is a visible mark."""
    for row in tables.rows(paths, table):
        yield [clean(value) if isinstance(value, str) else value for value in row]
