"""Shows that a command computes: ``simulating docker … 40 %, 12 s`` on stderr, after one second, in a terminal."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from taxtui.terminal_text import cut, width

EVERY_S: Final = 1.0


@contextlib.contextmanager
def waiting(doing: str) -> Iterator[Callable[[float], None]]:
    """Write ``doing`` and how long it has lasted each second; erase the line when the block ends.

    The block may call what it gets with the share that is done, which is then printed too.

    A timer's signal writes the line: a thread would keep costmodel from forking. The block itself writes nothing.
    """
    done = 0.0

    def progress(share: float) -> None:
        nonlocal done
        done = share

    if not sys.stderr.isatty() or threading.current_thread() is not threading.main_thread():
        yield progress
        return
    began, columns = time.monotonic(), 0

    def show(*_: object) -> None:
        nonlocal columns
        share = f"{done:.0%}, ".replace("%", " %") if done else ""
        line = cut(f"{doing} … {share}{time.monotonic() - began:.0f} s", shutil.get_terminal_size().columns - 1)
        columns = width(line)
        _write(f"\r{line}")

    handler = signal.signal(signal.SIGALRM, show)
    timer = signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)
    try:
        yield progress
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)  # a timer that was there before goes on
        if columns:
            _write(f"\r{' ' * columns}\r")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding, "replace"))
