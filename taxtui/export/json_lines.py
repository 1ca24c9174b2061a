"""A table as JSON lines: an object per row; what nobody knows is null."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from costmodel.recording.table import columns
from taxtui.export import told_rows


def pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Raises ``SourceError``."""
    names = [column.name for column in columns(table)]
    encode = msgspec.json.Encoder().encode
    for row in told_rows(paths, table):
        yield encode(dict(zip(names, row, strict=True))) + b"\n"
