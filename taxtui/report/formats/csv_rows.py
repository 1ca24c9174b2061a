"""Rows as CSV: one line per row, with columns like ``worker_hours.low`` for nested values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Final

from taxtui.report.formats import Report
from taxtui.terminal_text import clean

FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # the wide ones begin a formula too
"""Characters at the beginning of a formula."""


def render(report: Report) -> str:
    """Return the records as CSV."""
    return to_text(report.records() if report.records else ())


def to_text(records: Sequence[dict[str, Any]]) -> str:
    """Return a head and one line per record, with an apostrophe before texts that look like a formula."""
    flat = [_flattened(record) for record in records]
    keys = list(dict.fromkeys(key for line in flat for key in line))
    columns = [key for key in keys if not any(name.startswith(f"{key}.") for name in keys)]  # null in some rows
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
    """Return a text without effect on a spreadsheet or a terminal."""
    text = clean(text)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
