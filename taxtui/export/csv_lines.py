"""A table as CSV: a head and a line per row; what nobody knows is empty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from costmodel.recording.table import columns
from taxtui.export import told_rows
from taxtui.report.formats.csv_rows import harmless


def pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Text cannot become a formula in a spreadsheet: it then begins with an apostrophe. Raises ``SourceError``."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([column.name for column in columns(table)])
    for row in told_rows(paths, table):
        writer.writerow([_cell(value) for value in row])
        if buffer.tell() > 1 << 16:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def _cell(value: int | str | bool | None) -> int | str:
    if isinstance(value, bool):
        return str(value).lower()
    return harmless(value) if isinstance(value, str) else "" if value is None else value
