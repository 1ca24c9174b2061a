"""Data to take away: a recording as tables, spans or metrics; and the table of the formats, one file and one line each.

A format reads the recordings itself, as a stream, and hands out bytes piece by piece.
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
"""A file has so many rows or spans, and one more for so many bytes: a command that takes 66 µs or longer needs more."""


class ExportFormat(NamedTuple):
    """An export format. ``writer`` is its ``module:function(paths, table)``, imported on first use."""

    name: str  # for --format
    about: str
    tables: bool  # of rows, one table at a time; False: the whole recording
    writer: str
    endings: tuple[str, ...]  # of the names of such files
    binary: bool = False

    def pieces(self, paths: Sequence[Path], table: str) -> Iterator[bytes]:
        """The whole file. Raises what reading raises, and ``UsageError`` where a package is missing."""
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
"""What ``--format`` takes."""


def most_rows(path: Path) -> int:
    """How many rows, or spans, a recording of its size may have: a byte makes four hundred of a span."""
    return MOST_ROWS + path.stat().st_size // BYTES_A_ROW


def too_many(path: Path, limit: int) -> RecordingError:
    """Return the error for a file with more commands than ``limit``."""
    return RecordingError(
        f"{path}: more commands than {limit:,}, what a recording of this size may have",
        fix="their trials alone: export --table trials, or costmodel.frame",
    )


def told_rows(paths: Sequence[Path], table: str) -> Iterator[TableRow]:
    """The rows of a table, as ``costmodel.recording.table`` has them, but what a terminal would obey or hide is a
    visible mark.

    Raises ``SourceError``, ``RecordingError``: too many.
    """
    from costmodel import table_rows

    for path in paths:
        limit = most_rows(path)
        for number, row in enumerate(table_rows([path], table), 1):
            if number > limit:
                raise too_many(path, limit)
            yield tuple(clean(value) if isinstance(value, str) else value for value in row)
