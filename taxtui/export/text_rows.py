"""A table as text: CSV with a head and a line per row, or JSON lines with an object per row.

An unknown value is empty in CSV and null in JSON.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from costmodel import table_columns
from taxtui.export import clean_rows
from taxtui.report.formats.csv_rows import harmless


def csv_pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Yield CSV. Text like a formula gets an apostrophe in front. Raises ``SourceError``, ``RecordingError``."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([column.name for column in table_columns(table)])
    for row in clean_rows(paths, table):
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


def json_pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Yield JSON lines. Raises ``SourceError``, ``RecordingError``."""
    names = [column.name for column in table_columns(table)]
    encode = msgspec.json.Encoder().encode
    for row in clean_rows(paths, table):
        yield encode(dict(zip(names, row, strict=True))) + b"\n"
