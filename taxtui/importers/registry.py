"""Readers by name, from the entry points ``taxtui.importers``; listing them imports none."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from taxtui import installed
from taxtui.errors import TaxtuiError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from taxtui.importers.protocol import Reader

GROUP: Final = "taxtui.importers"


def names() -> list[str]:
    """Every installed format, shipped or third-party, sorted."""
    return sorted(installed.points(GROUP))


def point(name: str) -> EntryPoint:
    """The entry point of a format. Raises ``UsageError``: no such format or file; with the nearest name."""
    found = installed.point(GROUP, name)
    if found is None:
        close = difflib.get_close_matches(name, names(), 1)
        hint = f"did you mean {close[0]!r}?" if close else f"formats: {', '.join(names())}"
        raise UsageError(f"{name!r} is no format and no file", fix=hint)
    return found


def load(name: str) -> Reader:
    """The reader of a format.

    Raises:
        UsageError: no such format; the message has the nearest name.
        TaxtuiError: what it imports is not installed.
    """
    found = point(name)
    try:
        reader: Reader = found.load()()
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "taxtui":
            raise  # a bug of ours, not a missing package
        fix = f"install what {found.value} imports"
        raise TaxtuiError(f"{name}: the module {error.name!r} is not installed", fix=fix) from error
    return reader
