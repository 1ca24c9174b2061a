"""The name of each cause of time, for sentences, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CAUSE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
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
"""Field of a row or of a trial → name of the cause, in the order in which bars are drawn."""
