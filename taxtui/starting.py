"""How a program of ours starts and ends: garbage is collected rarely, and Ctrl-C prints one line.

The collection of garbage during imports and at the end would take a quarter of the time that both take.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal

TYPE_CHECKING = False  # typing takes longer to import than all this, and Ctrl-C is not answered until then
if TYPE_CHECKING:
    from typing import Final

RARELY: Final = (50_000, 10, 10)
"""After how many allocations Python looks for cycles, where it should hardly ever; its own 700 is for any program."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as shells have it."""
_usual: Final = gc.get_threshold()


def quickly(name: str) -> None:
    """Before a program's own imports; nothing where ``name`` is not that of one, as it is imported by others."""
    if name == "__main__":
        gc.set_threshold(*RARELY)
        atexit.register(gc.freeze)


def leaves_on_interrupt() -> bool:
    """Exit at once on Ctrl-C until ``loaded``: during an import Python can wrap or drop a ``KeyboardInterrupt``.

    Returns whether Ctrl-C is answered at all: under nohup, and in a script's background, it is ignored.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    signal.signal(signal.SIGINT, _leave)
    return True


def _leave(*_: object) -> None:
    print_interrupted()
    os._exit(INTERRUPTED)


def print_interrupted() -> None:
    """One line on stderr, below the terminal's own ``^C``."""
    try:
        os.write(2, b"\ntaxtui: interrupted\n")
    except OSError:  # the terminal may be gone
        return


def loaded() -> None:
    """From now on collect as usual, and raise ``KeyboardInterrupt`` on Ctrl-C."""
    if gc.get_threshold() == RARELY:
        gc.set_threshold(*_usual)
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
