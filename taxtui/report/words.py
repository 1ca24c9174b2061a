"""The names of causes and of verdicts, as every table, screen and page prints them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from costmodel.statistics.verdict import CANNOT_TELL, DIFFERS, TIE

CAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "startup": "startup",
        "create": "create",
        "ready": "ready",
        "image_pull": "image pulls",
        "preload": "preload",
        "dispatch": "dispatch",
        "wrapper": "wrapper time",
        "unsplit": "undivided",
        "slowdown": "slower commands",
        "contention": "contention",
        "work": "command time",
        "think": "model time",
        "queued": "throttled",
        "throttle": "throttled",
        "harness": "runner gap",
        "failed": "failures",
        "failures": "failures",
        "cleanup": "cleanup",
        "wasted": "excess rollouts",
    }
)
"""Field of a cost model's row or of a trial → name of the cause, in the order in which bars are drawn."""

NO_DIFFERENCE: Final = "no difference"
INCONCLUSIVE: Final = "inconclusive"
BETTER: Final = "better"
WORSE: Final = "worse"


def verdict(kind: str, change: float) -> str:
    """Return the verdict on an amount of which less is better; ``change`` is positive if there is more of it now."""
    if kind == DIFFERS:
        return WORSE if change > 0 else BETTER
    return {TIE: NO_DIFFERENCE, CANNOT_TELL: INCONCLUSIVE}.get(kind, "")
