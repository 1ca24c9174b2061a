"""One colour, one letter and one hatch for each cause, in terminals, screens and pages.

The hues are by Okabe and Ito. Each colour has a contrast of at least 4.5 to its background (WCAG 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Shade(NamedTuple):
    """One colour as #rrggbb on a light ground and on a dark one."""

    light: str
    dark: str


class CauseLook(NamedTuple):
    """How a cause is drawn."""

    letter: str  # where there is neither colour nor hatch
    hatch: str  # a block character
    shade: Shade


_STARTUP: Final = Shade("#2479b6", "#57b5ea")
_THROTTLED: Final = Shade("#21786f", "#45ab9a")
_FAILURES: Final = Shade("#c62828", "#ff6b5e")

LOOKS: Final[Mapping[str, CauseLook]] = MappingProxyType(
    {
        "startup": CauseLook("S", "▒", _STARTUP),
        "create": CauseLook("C", "▒", _STARTUP),
        "ready": CauseLook("R", "▙", Shade("#0b4f86", "#3f8fd0")),
        "image_pull": CauseLook("I", "▟", Shade("#5b4fc4", "#8c83f0")),
        "preload": CauseLook("P", "▖", Shade("#6a7280", "#9a9fa8")),
        "dispatch": CauseLook("D", "▓", Shade("#a96500", "#e6a001")),
        "wrapper": CauseLook("W", "▞", Shade("#6b5b45", "#a8977c")),
        "unsplit": CauseLook("U", "▚", Shade("#867600", "#f0e543")),
        "slowdown": CauseLook("L", "▛", Shade("#8a5a2b", "#c8a165")),
        "contention": CauseLook("N", "▌", Shade("#332289", "#8f86e9")),
        "work": CauseLook("#", "█", Shade("#008063", "#01b584")),
        "think": CauseLook("M", "░", Shade("#707070", "#b0b0b0")),
        "queued": CauseLook("Q", "▄", _THROTTLED),
        "throttle": CauseLook("Q", "▄", _THROTTLED),
        "harness": CauseLook("G", "▘", Shade("#ae5386", "#cd7aa8")),
        "failed": CauseLook("F", "▜", _FAILURES),
        "failures": CauseLook("F", "▜", _FAILURES),
        "cleanup": CauseLook("X", "▀", Shade("#8c4a2c", "#c98a5e")),
    }
)
"""Cause, as in ``words.CAUSES`` → look. Two keys with the same name share a look; create is a part of startup."""
