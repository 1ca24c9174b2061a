"""Shipped start-up times and speeds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from costmodel.recording.published import Published, read_published

SHIPPED: Final = Path(__file__).parent / "data" / "published"


@cache
def shipped() -> tuple[Published, ...]:
    """Return the shipped files of starts and speeds, cached."""
    return tuple(map(read_published, sorted(SHIPPED.glob("*.toml"))))
