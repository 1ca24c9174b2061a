"""The rows as CSV: one line per row, nested values as ``worker_hours.low`` and the like."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Final

from taxtui.report.formats import Report
from taxtui.terminal_text import clean

FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # the wide ones begin a formula too
"""Signs that begin a formula; a tab or the end of a line, behind which a formula may begin, is made visible."""


def render(report: Report) -> str:
    """The records, without what a spreadsheet would take for a formula."""
    return to_text(report.records() if report.records else ())


def to_text(records: Sequence[dict[str, Any]]) -> str:
    """A head and one line per record; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    flat = [_flattened(record) for record in records]
    keys = list(dict.fromkeys(key for line in flat for key in line))
    columns = [key for key in keys if not any(other.startswith(f"{key}.") for other in keys)]  # null in some rows
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[line.get(column, "") for column in columns] for line in flat])
    return out.getvalue().rstrip("\n")


def _flattened(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, dict):
            flat |= _flattened(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            flat[f"{prefix}{key}"] = harmless(" ".join(map(str, value)))
        else:
            flat[f"{prefix}{key}"] = harmless(value) if isinstance(value, str) else "" if value is None else value
    return flat


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula, and no terminal for a command."""
    text = clean(text)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
