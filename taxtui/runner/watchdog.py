"""A process that outlives the run in order to clean up after it: ``python -m taxtui.runner.watchdog LEDGER_ENTRY``.

It sits in a session of its own, with its clients open, blocked on a pipe that only the runner holds. ``done`` on the
pipe ends it. End of file means that the runner died: then it finds and reaps everything with the run's label, again
and again, until nothing has been found for as long as a create that was under way could still take.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from taxtui.errors import SubstrateError
from taxtui.registry import build
from taxtui.runner import ledger
from taxtui.runner.ledger import Entry
from taxtui.substrate import Substrate

DONE: Final = b"done\n"
READY: Final = b"ready\n"
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
GIVE_UP_AFTER_S: Final = 3600.0
"""A provider that cannot be reached for an hour keeps its own deadline; the ledger entry stays for ``taxtui sweep``."""


class Watchdog:
    """The runner's end of it."""

    def __init__(self, entry: Entry) -> None:
        """Write the ledger entry and start the process; it is ready after ``wait_ready``."""
        self._run_id = entry.run_id
        path = ledger.write(entry)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "taxtui.runner.watchdog", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )

    async def wait_ready(self) -> None:
        """Return once it holds the pipe with its clients open, so that it can act at once."""
        assert self._process.stdout is not None
        await asyncio.to_thread(self._process.stdout.readline)

    def release(self, *, clean: bool) -> None:
        """The run has ended. ``clean``: nothing is left; otherwise the watchdog sweeps as if the runner had died."""
        assert self._process.stdin is not None
        if clean:
            ledger.remove(self._run_id)
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(DONE)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        if clean:
            self._process.wait()


async def sweep(entry: Entry, substrates: list[Substrate]) -> None:
    """Find and reap until nothing was found for one create-timeout; then forget the run."""
    began = quiet_since = time.monotonic()
    pause_s = FIRST_PAUSE_S
    while time.monotonic() - quiet_since < entry.create_timeout_s:
        found_any = False
        for substrate in substrates:
            try:
                for found in await substrate.find(entry.run_id):
                    found_any = True
                    await substrate.reap(found)
            except SubstrateError:
                found_any = True  # not known to be clean
        if found_any:
            quiet_since, pause_s = time.monotonic(), FIRST_PAUSE_S
        if time.monotonic() - began > GIVE_UP_AFTER_S:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(LONGEST_PAUSE_S, pause_s * 1.5)
    ledger.remove(entry.run_id)


async def _main(path: Path) -> None:
    entry = ledger.read(path)
    async with contextlib.AsyncExitStack() as stack:
        substrates = []
        for ref in entry.substrates:
            with contextlib.suppress(SubstrateError):  # the runner could not use it either
                substrates.append(await stack.enter_async_context(build(ref)))
        os.write(sys.stdout.fileno(), READY)
        said = await asyncio.to_thread(sys.stdin.buffer.read)
        if said != DONE:
            await sweep(entry, substrates)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
