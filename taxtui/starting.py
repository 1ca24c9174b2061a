"""Ctrl-C during the start of the command line: one line and exit code 130."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # importing typing takes longer than this module, and Ctrl-C is not handled before
if TYPE_CHECKING:
    from typing import Final

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as in shells."""


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


def interrupt_on_signals() -> None:
    """Raise ``KeyboardInterrupt`` on SIGTERM and SIGHUP too, for commands that remove files at their end."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, signal.default_int_handler)


def loaded() -> None:
    """Raise ``KeyboardInterrupt`` on Ctrl-C from now on."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)
