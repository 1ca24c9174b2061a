"""Published start-up times and speeds that ship."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from costmodel.recording.published import Published, read_published

SHIPPED: Final = Path(__file__).parent / "data" / "published"


@cache
def shipped() -> tuple[Published, ...]:
    """The files of starts and speeds that come with the cost model; read once, for they do not change."""
    return tuple(map(read_published, sorted(SHIPPED.glob("*.toml"))))
