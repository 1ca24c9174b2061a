"""Commands to a run on its standard input: JSON lines, ``{"op": "pause"}``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Mapping


def read_commands(
    actions: Mapping[str, Callable[[], None]], ended: Callable[[], None], misunderstood: Callable[[str], None]
) -> None:
    """Call the action of each line in the running loop, and ``ended`` at the end of the stream. Returns at once."""
    loop = asyncio.get_running_loop()

    def ask(act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run has ended
            loop.call_soon_threadsafe(act)

    def listen() -> None:
        # Not sys.stdin: Python aborts when it exits while a thread holds the lock of that buffer.
        with contextlib.suppress(OSError), open(0, "rb", buffering=0, closefd=False) as stdin:
            for line in stdin:
                try:
                    ask(actions[json.loads(line)["op"]])
                except (ValueError, KeyError, TypeError):
                    misunderstood(f"{line[:80]!r}")
        ask(ended)

    threading.Thread(target=listen, daemon=True).start()
