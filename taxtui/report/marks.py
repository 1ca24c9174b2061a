"""Reasons to doubt rows, in a table: two letters per row at most, and one line for what all rows share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count
from string import ascii_lowercase

from costmodel.projection import warnings

Flags = Sequence[str]
"""Of one row, that first which could move it most. A flag may have a value behind a space."""


class FlagMarks:
    """What a table marks its rows with; every text and screen that shows flags has it from here."""

    def __init__(self, rows: Sequence[Flags], words: Mapping[str, str], do: Mapping[str, str]) -> None:
        """``words`` and ``do``: what a flag says and what to do about it."""
        self._words, self._do = words, do
        self.shared = warnings.shared(rows) if rows else ()
        seen = dict.fromkeys(flag for row in rows for flag in warnings.marks(row, self.shared))
        letters = chain(ascii_lowercase, map("({})".format, count(1)))
        self.letters: dict[str, str] = dict(zip(seen, letters, strict=False))

    def own(self, row: Flags) -> tuple[str, ...]:
        """The flags that a row is marked with."""
        return warnings.marks(row, self.shared)

    def of(self, row: Flags) -> str:
        """Their letters."""
        return "".join(self.letters.get(flag, "") for flag in self.own(row))

    def told(self, flag: str) -> str:
        """``few_runs: what it says; what to do``."""
        return f"{flag}: {self._found(self._words, flag)}; {self._found(self._do, flag)}"

    def notes(self) -> list[str]:
        """A line for what all rows share, and one for each letter."""
        return [*self.of_all(), *(f"{letter}  {self.told(flag)}" for flag, letter in self.letters.items())]

    def of_all(self) -> list[str]:
        """The line for what all rows share; none where that is nothing."""
        parts = [f"{flag} ({self._found(self._do, flag)})" for flag in self.shared]
        return [f"All rows: {', '.join(parts)}."] if parts else []

    def brief(self) -> list[str]:
        """One line: what each letter stands for."""
        return [" · ".join(f"{letter} {flag}" for flag, letter in self.letters.items())] if self.letters else []

    def _found(self, among: Mapping[str, str], flag: str) -> str:
        return among.get(flag) or among[flag.partition(" ")[0]]
