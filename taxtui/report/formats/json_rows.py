"""The rows as JSON: a list of objects, indented."""

from __future__ import annotations

import msgspec

from taxtui.report.formats import Report
from taxtui.terminal_text import UNPRINTABLE


def render(report: Report) -> str:
    """The records; what a terminal would obey is written as its number."""
    records = report.records() if report.records else ()
    plain = UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(records).decode())
    return msgspec.json.format(plain, indent=2)
