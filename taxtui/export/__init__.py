"""Export a recording as tables, spans or metrics. Each format is a file and a line in ``FORMATS``.

A format reads recordings as a stream and yields bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from taxtui.errors import RecordingError
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from costmodel import TableRow

MOST_ROWS, BYTES_A_ROW = 10_000, 4
"""Limit of rows or spans in a file: a base, and a row per number of bytes. A command of 66 µs takes more bytes."""


class ExportFormat(NamedTuple):
    """An export format. ``writer`` is a ``module:function(paths, table)``, imported on first use."""

    name: str  # for --format
    about: str
    tables: bool  # a table per export; False: the whole recording
    writer: str
    endings: tuple[str, ...]  # of file names
    binary: bool = False

    def pieces(self, paths: Sequence[Path], table: str) -> Iterator[bytes]:
        """Yield the file. Raises ``SourceError``, ``RecordingError``, and ``UsageError`` if a package is missing."""
        module, _, function = self.writer.partition(":")
        pieces: Iterator[bytes] = getattr(import_module(module), function)(paths, table)
        return pieces


FORMATS: Final = (
    ExportFormat("csv", "a line per row", True, "taxtui.export.text_rows:csv_pieces", (".csv",)),
    ExportFormat("jsonl", "an object per line", True, "taxtui.export.text_rows:json_pieces", (".jsonl", ".ndjson")),
    ExportFormat(
        "parquet",
        "columns, compressed; needs pyarrow",
        True,
        "taxtui.export.parquet:pieces",
        (".parquet",),
        binary=True,
    ),
    ExportFormat(
        "otlp",
        "OTLP/JSON spans of trials, phases and commands",
        False,
        "taxtui.export.otlp:pieces",
        (".jsonl", ".ndjson"),
    ),
    ExportFormat(
        "prometheus", "a text file of metrics, a summary per cell", False, "taxtui.export.prometheus:pieces", (".prom",)
    ),
)

BY_NAME: Final = {format_.name: format_ for format_ in FORMATS}
NAMES: Final = tuple(BY_NAME)
"""Values of ``--format``."""


def most_rows(path: Path) -> int:
    """Return the limit of rows or spans of a recording. Exported spans have 400 bytes per byte of a recording."""
    return MOST_ROWS + path.stat().st_size // BYTES_A_ROW


def too_many(path: Path, limit: int) -> RecordingError:
    """Return the error for a file with more commands than ``limit``."""
    return RecordingError(
        f"{path}: more commands than {limit:,}, the limit of a recording of this size",
        fix="export trials alone: export --table trials, or costmodel.frame",
    )


def clean_rows(paths: Sequence[Path], table: str) -> Iterator[TableRow]:
    """Yield the rows of a table without control characters: each becomes a visible mark.

    Raises ``SourceError``, and ``RecordingError`` for more rows than ``most_rows``.
    """
    from costmodel import table_rows

    for path in paths:
        limit = most_rows(path)
        for number, row in enumerate(table_rows([path], table), 1):
            if number > limit:
                raise too_many(path, limit)
            yield tuple(clean(value) if isinstance(value, str) else value for value in row)
