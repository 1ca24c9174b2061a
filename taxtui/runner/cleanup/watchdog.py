"""The watchdog cleans up after a dead runner: ``python -m taxtui.runner.cleanup.watchdog``.

The watchdog has its own session and open clients, and reads a pipe whose other end only the runner has. The pipe
brings the run's ledger entry, and the watchdog saves the entry itself, so that every entry has a watchdog. ``done``
ends the watchdog. End of file means that the runner died: the watchdog then removes every sandbox with the run's label,
until a search finds none for the longest duration of a create.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

import msgspec

from costmodel import events
from taxtui.errors import TaxtuiError
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.ledger import LedgerEntry
from taxtui.runner.cleanup.reaping import final_sweep
from taxtui.runner.journal import Journal
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.protocol import Substrate
from taxtui.sandboxes.registry import build

DONE: Final = b"done\n"
READY: Final = b"ready\n"
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
LOOK_S: Final = 1.0
"""Interval between the runner's checks of the watchdog."""
OPENED_WITHIN_S: Final = 120.0
DISMISSED_WITHIN_S: Final = 10.0
"""A watchdog is killed after this time, so that no run waits longer."""
GIVE_UP_AFTER_S: Final = 3600.0
"""An hour after the last possible create the watchdog ends; the ledger entry stays for ``taxtui clean``."""

_ROOM: Final = "make room for processes and open files (ulimit -u, ulimit -n, the control group's pids.max)"


class Watchdog:
    """The runner's handle of the watchdog."""

    def __init__(self, entry: LedgerEntry) -> None:
        """Start the process and send the ledger entry. The watchdog is ready after ``wait_ready``.

        Raises:
            TaxtuiError: no process or descriptor is free.
        """
        self._entry = entry
        self._guarding = False
        self._start()

    def _start(self) -> None:
        # Ctrl-C would end the process until it has left our session.
        with _said_where_there_is_no_room(), _interrupts_blocked():
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "taxtui.runner.cleanup.watchdog"],  # -P: no imports from the user's folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._say(msgspec.json.encode(self._entry) + b"\n")

    async def wait_ready(self) -> None:
        """Return once the ledger has the entry and the watchdog's clients are open.

        Raises:
            TaxtuiError: the watchdog cannot start.
        """
        process = self._process
        assert process.stdout is not None
        too_late = asyncio.get_running_loop().call_later(OPENED_WITHIN_S, process.kill)
        try:
            with _said_where_there_is_no_room():
                answer = await asyncio.to_thread(process.stdout.readline)
        finally:
            too_late.cancel()
        if answer != READY:
            why = answer.decode().strip() or "the process died or did not answer"
            raise TaxtuiError(f"no watchdog to clean up after a crash: {why}")
        self._guarding = True

    async def keep(self, journal: Journal) -> None:
        """Until cancelled, replace a dead watchdog and record the replacement.

        Raises:
            TaxtuiError: no watchdog can be started.
        """
        while True:
            await asyncio.sleep(LOOK_S)
            if self._process.poll() is not None:
                self._let_go()
                self._start()
                await finish_despite_cancel(self.wait_ready(), OPENED_WITHIN_S + 1)
                journal.emit(events.Notice(journal.now(), "warning", "the watchdog has died; a new watchdog runs"))

    def release(self, *, clean: bool) -> None:
        """The run has ended. ``clean``: nothing is left; otherwise the watchdog sweeps as if the runner had died.

        A watchdog that was never ready has guarded nothing, and is killed. In a resumption its entry may stay: the
        entry covers the earlier parts of the run too.
        """
        if clean and self._guarding:
            ledger.settled(self._entry)
            self._say(DONE)
        elif clean:
            self._process.kill()
        self._let_go()
        if clean:
            try:
                self._process.wait(DISMISSED_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if not self._guarding and len(self._entry.parts) == 1 and not ledger.taken_over(self._entry):
                with contextlib.suppress(OSError):
                    self._entry.path.unlink()  # this entry alone: workers have theirs

    def _let_go(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()

    def _say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Deliver Ctrl-C only after the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _said_where_there_is_no_room() -> Iterator[None]:
    """Raise ``TaxtuiError`` where no descriptor, process or thread is free."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise TaxtuiError(f"no watchdog to clean up after a crash: {error}", fix=_ROOM) from error


async def sweep(entry: LedgerEntry, substrates: list[Substrate]) -> None:
    """Remove sandboxes until a search one create timeout after the runner's death finds none; then forget the run.

    A create under way appears within the create timeout: a sandbox found earlier, or an error of the
    provider, does not make the watchdog wait longer.

    A resumed run takes over: the label is the same, and the resumption sweeps at the end.
    """
    began, pause_s = time.monotonic(), FIRST_PAUSE_S

    def is_ours(sandbox: str) -> bool:  # asked after the search: a resumption may have made the sandbox
        return entry.covers(sandbox) and not ledger.taken_over(entry)

    while True:
        last_look = time.monotonic() - began >= entry.create_timeout_s
        left = await final_sweep(substrates, entry.run_id, is_ours)
        if ledger.taken_over(entry):
            return
        if last_look and not left:
            break
        if time.monotonic() - began > entry.create_timeout_s + GIVE_UP_AFTER_S:
            return
        await asyncio.sleep(pause_s)
        pause_s = FIRST_PAUSE_S if left else min(LONGEST_PAUSE_S, pause_s * 1.5)
    ledger.settled(entry)


async def _main() -> None:
    line = sys.stdin.buffer.readline()
    if not line:
        return  # the runner died before the first sandbox
    entry = msgspec.json.decode(line, type=LedgerEntry)
    async with contextlib.AsyncExitStack() as stack:
        try:
            substrates = [await stack.enter_async_context(build(ref)) for ref in entry.substrates]
            ledger.write(entry)  # last: an earlier entry of the run stays until this watchdog can sweep
        except TaxtuiError as error:
            _answer(f"{error}\n".encode())
            return
        _answer(READY)
        last_words = await asyncio.to_thread(sys.stdin.buffer.read)
        if last_words != DONE:
            await sweep(entry, substrates)


def _answer(line: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # the runner has died meanwhile
        os.write(sys.stdout.fileno(), line)


if __name__ == "__main__":
    asyncio.run(_main())
