"""A table as JSON lines: an object per row; what nobody knows is null."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from costmodel.tables import columns
from taxtui.export import told_rows
from taxtui.report.formats.json_rows import printable


def pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """What a terminal would obey is written as its number. Raises ``SourceError``."""
    names = [column.name for column in columns(table)]
    encode = msgspec.json.Encoder().encode
    for row in told_rows(paths, table):
        yield printable(encode(dict(zip(names, row, strict=True)))) + b"\n"
