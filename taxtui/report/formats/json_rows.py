"""The rows as JSON: a list of objects, indented."""

from __future__ import annotations

from typing import Any

import msgspec

from taxtui.report.formats import Report
from taxtui.terminal_text import UNPRINTABLE, clean


def render(report: Report) -> str:
    """The records."""
    records = report.records() if report.records else ()
    return msgspec.json.format(printable(_encoded(records)).decode(), indent=2)


def printable(encoded: bytes) -> bytes:
    """JSON in which what a terminal would obey is written as its number."""
    text = encoded.decode()
    return encoded if text.isascii() else UNPRINTABLE.sub(lambda result: f"\\u{ord(result[0]):04x}", text).encode()


def _encoded(records: Any) -> bytes:
    try:
        return msgspec.json.encode(records)
    except UnicodeEncodeError:  # a file's name that is no UTF-8
        return msgspec.json.encode(_cleaned(msgspec.to_builtins(records)))


def _cleaned(value: Any) -> Any:
    """The same with a visible mark for each byte that is no text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(member) for key, member in value.items()}
    return [_cleaned(member) for member in value] if isinstance(value, list) else value
