"""A table as Parquet, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from costmodel import table_columns
from taxtui import installed
from taxtui.errors import UsageError
from taxtui.export import clean_rows

ROWS: Final = 1 << 16
"""Rows of a group, which is in memory at once; the compressed file is too."""


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
    file = arrow.BufferOutputStream()
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(rows, ROWS)):
            values = zip(*group, strict=True)
            arrays = [arrow.array(column, field.type) for column, field in zip(values, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
    yield file.getvalue().to_pybytes()
