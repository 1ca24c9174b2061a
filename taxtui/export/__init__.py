"""Data to take away: a recording as tables, spans or metrics; and the table of the formats, one file and one line each.

A format reads the recordings itself, as a stream, and hands out bytes piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple


class ExportFormat(NamedTuple):
    """A way to take it away. ``home`` is the module with its ``pieces(paths, table)``, imported on first use."""

    name: str  # for --format
    about: str
    tables: bool  # of rows, one table at a time; False: the whole recording
    home: str
    binary: bool = False

    def pieces(self, paths: Sequence[Path], table: str) -> Iterator[bytes]:
        """The whole file. Raises what reading raises, and ``UsageError`` where a package is missing."""
        told: Iterator[bytes] = import_module(self.home).pieces(paths, table)
        return told


FORMATS: Final = (
    ExportFormat("csv", "a line per row", True, "taxtui.export.csv_lines"),
    ExportFormat("jsonl", "an object per line", True, "taxtui.export.json_lines"),
    ExportFormat("parquet", "columns, compressed; needs pyarrow", True, "taxtui.export.parquet", binary=True),
    ExportFormat("otlp", "OTLP/JSON spans of trials, phases and commands", False, "taxtui.export.otlp"),
    ExportFormat("prometheus", "a text file of metrics, a summary per cell", False, "taxtui.export.prometheus"),
)

BY_NAME: Final = {one.name: one for one in FORMATS}
NAMES: Final = tuple(BY_NAME)
"""What ``--format`` takes."""
