"""What the Projection screen asks of the cost model, as the words of ``taxtui project``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

TRAJECTORIES: Final = 1_000_000
WORKERS: Final = 500


def command(paths: Sequence[Path]) -> str:
    """The command line that asks for the usual projection."""
    words = ["--trajectories", str(TRAJECTORIES), "--workers", str(WORKERS)]
    return shlex.join(["taxtui", "project", *map(str, paths), *words])
