"""Writes a page with the command that a person would type, in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

NICENESS: Final = 15
"""A run that is measured, and the interface, come before a page."""


class PageProcess:
    """A command of taxtui that writes a file."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it. Raises ``OSError``: there can be no more processes."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "taxtui", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with contextlib.suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)

    async def refusal(self) -> str:
        """Wait until it has ended: why it refused, or nothing. Who no longer waits ends it."""
        try:
            _, said = await asyncio.to_thread(self._process.communicate)
        finally:
            self._process.terminate()
            code = self._process.wait()
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        return "" if code == 0 else (lines or [f"its process ended with {code}"])[-1].removeprefix("taxtui: ")
