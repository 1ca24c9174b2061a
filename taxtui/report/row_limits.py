"""Limits of rows: a small file with very many cells is cheap to send and expensive to print.

Each limit is a base above any ordinary measurement, and one more row per number of bytes of the recordings. The work
for an output stays in proportion to the size of its input.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from taxtui.errors import RecordingError


class RowLimit(NamedTuple):
    """A base number of rows, and one more row per ``bytes_a_row``."""

    rows: int
    bytes_a_row: int
    output: str

    def check(self, rows: int, paths: Iterable[Path], choose: str) -> None:
        """Refuse more rows than recordings of this size may have; ``choose``: options for choosing rows.

        Raises:
            RecordingError: there are too many rows.
        """
        size = sum(path.stat().st_size for path in paths)
        if rows > (limit := self.rows + size // self.bytes_a_row):
            raise RecordingError(
                f"{rows:,} cells are more than {self.output} of {size:,} bytes may have rows, {limit:,}",
                fix=f"choose some with {choose}, or export all with taxtui export",
            )


ANSWER: Final = RowLimit(384, 8_000, "an answer")
TABLES: Final = RowLimit(128, 8_000, "tables or data")
"""All tables, or rows of data: a row costs about twice as much as in an answer."""
PAGE: Final = RowLimit(128, 16_000, "a page")
"""A page or its figures: a row costs about twice as much as in tables."""
