"""Readers by name, from the entry points ``taxtui.importers``. Listing the names imports no reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from costmodel import toml
from taxtui import installed
from taxtui.errors import UsageError

if TYPE_CHECKING:
    from taxtui.importers.protocol import Reader

GROUP: Final = "taxtui.importers"


def names() -> list[str]:
    """Return every installed format, shipped or third-party, sorted."""
    return sorted(installed.points(GROUP))


def load(name: str) -> Reader:
    """Return the reader of a format. Raises ``UsageError`` with the nearest name: no such format or file."""
    entry_point = installed.point(GROUP, name)
    if entry_point is None:
        raise UsageError(f"{name!r} is no format and no file", fix=toml.hint(name, names()))
    reader: Reader = entry_point.load()()
    return reader
