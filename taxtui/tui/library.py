"""The recordings that a person has on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from taxtui.commands.run import default_folder
from taxtui.scenario import bundled

SUFFIX: Final = ".msgpack"
SHIPPED: Final = "../recordings/run.msgpack"


def newest() -> Path | None:
    """The recording that was written to last, else the one that ships with taxtui."""
    return max(recordings(), key=lambda path: path.stat().st_mtime_ns, default=bundled(SHIPPED))


def recordings() -> Iterator[Path]:
    """Every file that ``taxtui run`` may have written where it writes without ``-o``."""
    yield from default_folder().glob(f"*{SUFFIX}")
