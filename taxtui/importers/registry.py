"""Readers by name, from the entry points ``taxtui.importers``. Listing the names imports no reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from costmodel import toml
from taxtui import installed
from taxtui.errors import TaxtuiError, UsageError

if TYPE_CHECKING:
    from taxtui.importers.protocol import Reader

GROUP: Final = "taxtui.importers"


def names() -> list[str]:
    """Return every installed format, shipped or third-party, sorted."""
    return sorted(installed.points(GROUP))


def load(name: str) -> Reader:
    """Return the reader of a format.

    Raises:
        UsageError: no such format or file; the message has the nearest name.
        TaxtuiError: a package that the reader imports is not installed.
    """
    entry_point = installed.point(GROUP, name)
    if entry_point is None:
        raise UsageError(f"{name!r} is no format and no file", fix=toml.hint(name, names()))
    try:
        reader: Reader = entry_point.load()()
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "taxtui":
            raise  # a bug of taxtui, not a missing package
        fix = f"install the imports of {entry_point.value}"
        raise TaxtuiError(f"{name}: the module {error.name!r} is not installed", fix=fix) from error
    return reader
