"""What Python does of its own accord while a program of ours is loaded and ends: a quarter of the time that both take.

A collector of garbage goes through all that is imported, again and again while it is, and once more at the end.
"""

from __future__ import annotations

import atexit
import gc
from typing import Final

RARELY: Final = (50_000, 10, 10)
"""After how many allocations Python looks for cycles, where it should hardly ever; its own 700 is for any program."""
_usual: Final = gc.get_threshold()


def quickly(name: str) -> None:
    """Before a program's own imports; nothing where ``name`` is not that of one, as it is imported by others."""
    if name == "__main__":
        gc.set_threshold(*RARELY)
        atexit.register(gc.freeze)


def loaded() -> None:
    """From now on collect as usual."""
    if gc.get_threshold() == RARELY:
        gc.set_threshold(*_usual)
