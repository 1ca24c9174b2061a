"""Limits of the rows of an output: a small file of very many cells is cheap to send and expensive to print.

Each limit is a number that a run of every tier on several substrates does not reach, and a row more for so many bytes
of recordings: the more a row costs, the more bytes. So what an output costs stays in proportion to what it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from taxtui.errors import RecordingError


class RowLimit(NamedTuple):
    """A number of rows, and one more row per number of bytes."""

    rows: int
    bytes_a_row: int
    what: str

    def check(self, rows: int, paths: Iterable[Path], choose: str) -> None:
        """Let so many rows pass.

        Args:
            rows: how many are asked for.
            paths: the recordings that they come from.
            choose: the options that choose among them, for the message.

        Raises:
            RecordingError: they are more than recordings of this size may have.
        """
        size = sum(path.stat().st_size for path in paths)
        if rows > (most := self.rows + size // self.bytes_a_row):
            raise RecordingError(
                f"{rows:,} cells are more than {self.what} of {size:,} bytes may have rows, {most:,}",
                fix=f"choose some with {choose}, or take all of it away with taxtui export",
            )


ANSWER: Final = RowLimit(384, 8_000, "an answer")
TABLES: Final = RowLimit(128, 8_000, "tables or data")
"""Every table, a row of data: each row costs about twice what it does in an answer."""
PAGE: Final = RowLimit(128, 16_000, "a page")
"""A page, pictures: each row costs about twice what it does in tables."""
