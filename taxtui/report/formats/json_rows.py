"""The rows as JSON: a list of objects, indented."""

from __future__ import annotations

import msgspec

from taxtui.report.formats import Report
from taxtui.terminal_text import UNPRINTABLE


def render(report: Report) -> str:
    """The records."""
    records = report.records() if report.records else ()
    return msgspec.json.format(printable(msgspec.json.encode(records)).decode(), indent=2)


def printable(encoded: bytes) -> bytes:
    """JSON in which what a terminal would obey is written as its number."""
    text = encoded.decode()
    return encoded if text.isascii() else UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
