"""Progress of a computation in a terminal: ``simulating docker … 40 %, 12 s`` on standard error."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from taxtui.terminal_text import cut, width

INTERVAL_S: Final = 1.0


@contextlib.contextmanager
def progress(activity: str) -> Iterator[Callable[[float], None]]:
    """Write the activity and its duration every second; erase the line when the block ends.

    The block may report the finished share of the work for the line.
    """
    share = 0.0

    def report(finished: float) -> None:
        nonlocal share
        share = finished

    if not sys.stderr.isatty():
        yield report
        return
    began, ended = time.monotonic(), threading.Event()

    def show() -> None:
        columns = 0
        while not ended.wait(INTERVAL_S):
            percent = f"{100 * share:.0f} %, " if share else ""
            line = f"{activity} … {percent}{time.monotonic() - began:.0f} s"
            line = cut(line, shutil.get_terminal_size().columns - 1)
            columns = width(line)
            _write(f"\r{line}")
        if columns:
            _write(f"\r{' ' * columns}\r")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield report
    finally:
        ended.set()
        thread.join()


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding, "replace"))
