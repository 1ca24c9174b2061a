"""Letters for the warnings of a table: at most two per row, and one explanation per family of warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from string import ascii_lowercase
from typing import Final

from taxtui.report.words import FAMILIES, FAMILY

Flags = Sequence[str]
"""Keys of a row's warnings, the most important first. A value may follow a key after a space."""
MOST: Final = 2
"""Number of warnings beside a row; exports and ``--explain`` contain all."""


def families(row: Flags) -> tuple[str, ...]:
    """Return the families of a row's warnings."""
    return tuple(dict.fromkeys(FAMILY[flag.partition(" ")[0]] for flag in row))


class FlagMarks:
    """Letters of the warnings of a table's rows. A family that all rows share has no letter."""

    def __init__(self, rows: Iterable[Flags], do: Mapping[str, str]) -> None:
        """``do``: advice about each warning."""
        self._rows, self._do = list(rows), do
        grouped = [families(row) for row in self._rows]
        first, *more = grouped or [()]
        self.shared = tuple(family for family in first if more and all(family in row for row in more))
        marked = dict.fromkeys(family for row in self._rows for family in self.families_of(row))
        letters = chain(ascii_lowercase, map("({})".format, count(1)))
        self.letters: dict[str, str] = dict(zip(marked, letters, strict=False))

    def families_of(self, row: Flags) -> tuple[str, ...]:
        """Return a row's most important families, without those of all rows."""
        return tuple(family for family in families(row) if family not in self.shared)[:MOST]

    def of(self, row: Flags) -> str:
        return "".join(self.letters.get(family, "") for family in self.families_of(row))

    def line(self, family: str) -> str:
        """Return the explanation: ``little data: intervals are rough …; record more trials``."""
        return f"{family}: {FAMILIES[family]}; {self._advice(family)}"

    def notes(self) -> list[str]:
        """Return a line for the warnings that all rows share, and a line for each letter."""
        return [*self.of_all(), *(f"{letter}  {self.line(family)}" for family, letter in self.letters.items())]

    def of_all(self) -> list[str]:
        parts = [f"{family} ({self._advice(family)})" for family in self.shared]
        return [f"All rows: {', '.join(parts)}."] if parts else []

    def brief(self) -> list[str]:
        """Return one line with the family of each letter."""
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
