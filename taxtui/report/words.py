"""The names of causes and of verdicts, as every table, screen and page prints them."""

from __future__ import annotations

from typing import Final

from costmodel.projection.cause_names import NAMES as CAUSES
from costmodel.statistics.verdict import CANNOT_TELL, DIFFERS, TIE

__all__ = ["BETTER", "CAUSES", "INCONCLUSIVE", "NO_DIFFERENCE", "UNDECIDED", "WORSE", "verdict"]

NO_DIFFERENCE: Final = "no difference"
INCONCLUSIVE: Final = "inconclusive"
BETTER: Final = "better"
WORSE: Final = "worse"
UNDECIDED: Final = {TIE: NO_DIFFERENCE, CANNOT_TELL: INCONCLUSIVE}
"""Verdict of a ratio to the cheapest, where that is not simply longer."""


def verdict(kind: str, change: float) -> str:
    """Return the verdict on an amount of which less is better; ``change`` is positive if there is more of it now."""
    if kind == DIFFERS:
        return WORSE if change > 0 else BETTER
    return UNDECIDED.get(kind, "")
