"""Start and end of a program: rare garbage collections, and one line on Ctrl-C.

Collections during imports and at the end take a quarter of the time of both.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal

TYPE_CHECKING = False  # importing typing takes longer than this module, and Ctrl-C is not handled before
if TYPE_CHECKING:
    from typing import Final

RARELY: Final = (50_000, 10, 10)
"""Thresholds of the garbage collector at the start; Python's own first threshold is 700."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as in shells."""
_usual: Final = gc.get_threshold()


def quickly(name: str) -> None:
    """Collect garbage rarely from now on, if ``name`` is the ``__name__`` of a program. Call before other imports."""
    if name == "__main__":
        gc.set_threshold(*RARELY)
        atexit.register(gc.freeze)


def exit_on_interrupt() -> bool:
    """Exit at once on Ctrl-C until ``loaded``: during an import Python can wrap or drop a ``KeyboardInterrupt``.

    Returns:
        False if Ctrl-C is ignored, as under nohup and in the background of a script.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    signal.signal(signal.SIGINT, _exit)
    return True


def _exit(*_: object) -> None:
    print_interrupted()
    os._exit(INTERRUPTED)


def print_interrupted() -> None:
    """Print one line on standard error, below the terminal's ``^C``."""
    try:
        os.write(2, b"\ntaxtui: interrupted\n")
    except OSError:  # the terminal may be gone
        return


def loaded() -> None:
    """Collect garbage as usual from now on, and raise ``KeyboardInterrupt`` on Ctrl-C."""
    if gc.get_threshold() == RARELY:
        gc.set_threshold(*_usual)
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)
