"""A table as Parquet, by pyarrow."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from costmodel import table_columns
from taxtui import installed
from taxtui.errors import UsageError
from taxtui.export import clean_rows

ROWS: Final = 1 << 16
"""Rows of a group, which is in memory at once."""


def pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Yield a Parquet file; ``about`` of a field describes the column. Raises ``SourceError``, ``UsageError``."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError("parquet needs pyarrow", fix=installed.extra_command("export")) from error
    kinds: dict[type, Any] = {int: arrow.int64(), str: arrow.string(), bool: arrow.bool_()}
    fields = table_columns(table)
    schema = arrow.schema([arrow.field(c.name, kinds[c.kind], metadata={"about": c.about}) for c in fields])
    rows = clean_rows(paths, table)
    sink = _Sink()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        while group := list(islice(rows, ROWS)):
            values = zip(*group, strict=True)
            arrays = [arrow.array(column, field.type) for column, field in zip(values, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            yield sink.drain()
    yield sink.drain()


class _Sink(io.RawIOBase):
    """Collects written bytes; positions count from the beginning of the file."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._size += len(self._pieces[-1])
        return len(self._pieces[-1])

    def drain(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data
