"""Warnings of rows in eight families: two letters per row at most, one line per family, the advice once.

JSON, CSV and ``--explain`` have every warning by its own key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from string import ascii_lowercase

from costmodel import warnings
from taxtui.report.words import FAMILIES, FAMILY

Flags = Sequence[str]
"""The warnings of one row, first the one that could move it most. A key may have a value behind a space."""


def families(row: Flags) -> tuple[str, ...]:
    """The families of a row's warnings, in their order."""
    return tuple(dict.fromkeys(FAMILY[flag.partition(" ")[0]] for flag in row))


class FlagMarks:
    """The marks of a table's rows; every text and screen that shows warnings has them from here."""

    def __init__(self, rows: Iterable[Flags], do: Mapping[str, str]) -> None:
        """``do``: the advice about each warning."""
        self._rows, self._do = list(rows), do
        grouped = [families(row) for row in self._rows]
        self.shared = warnings.shared(grouped) if grouped else ()
        seen = dict.fromkeys(family for row in grouped for family in warnings.marks(row, self.shared))
        letters = chain(ascii_lowercase, map("({})".format, count(1)))
        self.letters: dict[str, str] = dict(zip(seen, letters, strict=False))

    def own(self, row: Flags) -> tuple[str, ...]:
        return warnings.marks(families(row), self.shared)

    def of(self, row: Flags) -> str:
        return "".join(self.letters.get(family, "") for family in self.own(row))

    def line(self, family: str) -> str:
        """``little data: intervals are rough …; record more trials``."""
        return f"{family}: {FAMILIES[family]}; {self._advice(family)}"

    def notes(self) -> list[str]:
        """A line for the warnings of all rows, and one for each letter."""
        return [*self.of_all(), *(f"{letter}  {self.line(family)}" for family, letter in self.letters.items())]

    def of_all(self) -> list[str]:
        parts = [f"{family} ({self._advice(family)})" for family in self.shared]
        return [f"All rows: {', '.join(parts)}."] if parts else []

    def brief(self) -> list[str]:
        """One line: the family of each letter."""
        return [" · ".join(f"{letter} {family}" for family, letter in self.letters.items())] if self.letters else []

    def _advice(self, family: str) -> str:
        present = dict.fromkeys(flag for row in self._rows for flag in row)
        advice = dict.fromkeys(
            self._do.get(flag) or self._do[flag.partition(" ")[0]]
            for flag in present
            if FAMILY[flag.partition(" ")[0]] == family
        )
        values = [flag for flag in present if " " in flag and FAMILY[flag.partition(" ")[0]] == family]
        return "; ".join([*values, *advice])
