"""Rows as JSON: an indented list of objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from taxtui.report.formats import Report
from taxtui.terminal_text import UNPRINTABLE, clean


def render(report: Report) -> str:
    """Return the records as JSON."""
    records = report.records() if report.records else ()
    return msgspec.json.format(printable(_encoded(records)).decode(), indent=2)


def plain(value: Any) -> Any:
    """Return a value with named tuples as mappings, also within mappings and lists."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, list | tuple) else value


def printable(encoded: bytes) -> bytes:
    """Return JSON with control characters as escape sequences."""
    text = encoded.decode()
    return encoded if text.isascii() else UNPRINTABLE.sub(lambda result: f"\\u{ord(result[0]):04x}", text).encode()


def _encoded(records: Any) -> bytes:
    try:
        return msgspec.json.encode(records)
    except UnicodeEncodeError:  # the name of a file is not UTF-8
        return msgspec.json.encode(_cleaned(msgspec.to_builtins(records)))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(member) for key, member in value.items()}
    return [_cleaned(member) for member in value] if isinstance(value, list) else value
