"""Shipped start-up times and other figures."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from costmodel.recording.published import Published, read_published

SHIPPED: Final = Path(__file__).parent / "data" / "published"


@cache
def shipped() -> tuple[Published, ...]:
    """Return the shipped files, cached."""
    return tuple(map(read_published, sorted(SHIPPED.glob("*.toml"))))
