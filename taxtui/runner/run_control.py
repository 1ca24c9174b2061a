"""Progress, stop, abandon and pause of a run or a worker, and the error of a crash."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Final

import msgspec

from costmodel import events
from taxtui.errors import CleanupFailed, WriteFailed

PAUSE: Final = "pause"
RESUME: Final = "resume"
STOP: Final = "stop"
INTERRUPT: Final = "interrupt"
CANCEL: Final = "cancel"
CLEANUP_WITHIN_S: Final = 240.0
"""Time limit for the clean-up of abandoned trials. The final sweep removes the rest."""
CANCELLED_WITHIN_S: Final = 5.0
"""Time limit for a trial after the cancellation of a late clean-up."""


class Progress(msgspec.Struct):
    """Progress of a run, without warm-ups."""

    planned: int
    in_flight: int = 0
    ended: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter)  # ended trials by outcome, also of lost workers
    ok_of: Counter[int] = msgspec.field(default_factory=Counter)  # successes by cell
    limit: str = ""  # the plan's limit at which launching stopped
    before: int = 0  # trials that ended in earlier parts of a resumed run
    repetition: int = 1  # the current one
    repetitions: int = 1

    @property
    def ok(self) -> int:
        return self.counts[events.OK]

    @property
    def cut_short(self) -> str:
        """The limit at which the run ended early; else empty."""
        return self.limit if self.ended < self.planned else ""

    def left_s(self, elapsed_s: float) -> float | None:
        """Return the remaining time by the pace so far; None before the first end in this part of the run.

        A trial in flight counts as half done.
        """
        done, half = self.ended - self.before, self.in_flight / 2
        return elapsed_s * max(0.0, self.planned - self.ended - half) / (done + half) if done else None


class RunControl:
    """The state behind stop, abandon and pause. ``changed`` is called after each change."""

    def __init__(self, changed: Callable[[str], None], crashed: Callable[[Exception], None] = lambda _: None) -> None:
        """Trials may start. ``changed`` receives ``stop``, ``interrupt``, ``cancel``, ``pause`` or ``resume``."""
        self.reason = ""  # the outcome; empty while trials may start
        self.limit = ""  # the exhausted limit, if a limit stopped launching
        self.crash: Exception | None = None  # an unexpected error
        self.write_error: WriteFailed | None = None
        self.stopped = asyncio.Event()
        self.abandoned = asyncio.Event()
        self.unpaused = asyncio.Event()
        self.unpaused.set()
        self._changed, self._crashed = changed, crashed

    @property
    def stopping(self) -> bool:
        return bool(self.reason)

    def stop(self, reason: str, limit: str = "") -> None:
        """Start no more trials; trials in flight continue to their end."""
        if not self.reason:
            self.reason, self.limit = reason, limit
        self.stopped.set()
        self.unpaused.set()
        self._changed(STOP)

    def abandon(self, reason: str) -> None:
        """Start no more trials and stop trials in flight; every clean-up still runs."""
        self.stop(reason)
        self.abandoned.set()
        self._changed(CANCEL if reason == events.CANCELLED else INTERRUPT)

    def pause(self, paused: bool) -> None:
        """Hold launches back, or continue."""
        if paused and not self.reason:
            self.unpaused.clear()
        else:
            self.unpaused.set()
        self._changed(PAUSE if not self.unpaused.is_set() else RESUME)

    def crashed(self, error: Exception) -> None:
        """End the run in good order after an unexpected error: trials are abandoned and clean up."""
        first, self.crash = self.crash is None, self.crash or error
        self.abandon(events.CRASHED)
        if first:
            self._crashed(error)

    def write_failed(self, error: WriteFailed) -> None:
        """End the run because writing the recording failed."""
        self.write_error = error
        self.abandon("write_failed")

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Turn an unexpected error of the block into a crash of the run."""
        try:
            yield
        except Exception as error:
            self.crashed(error)

    async def guarded(self, work: Awaitable[object]) -> None:
        with self.guard():
            await work

    async def awaited(self, measuring: asyncio.Task[None], late: Callable[[], Awaitable[object]] | None = None) -> None:
        """Return once every trial has ended. Only abandoned trials have a deadline; ``late`` is awaited afterwards."""
        abandoned = asyncio.ensure_future(self.abandoned.wait())
        try:
            await asyncio.wait({measuring, abandoned}, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also where this task is cancelled: the trials are not, their clean-ups have to run
            abandoned.cancel()
            if not (measuring.done() or self.abandoned.is_set()):
                self.abandon(events.CANCELLED)
            await asyncio.wait({measuring}, timeout=CLEANUP_WITHIN_S)
            if not measuring.done():
                self.crashed(CleanupFailed(f"trials did not end within {CLEANUP_WITHIN_S:g} s of being abandoned"))
                if late is not None:
                    await late()
                measuring.cancel()
                await asyncio.wait({measuring}, timeout=CANCELLED_WITHIN_S)


@contextlib.asynccontextmanager
async def run_helpers(control: RunControl, *work: Awaitable[None]) -> AsyncIterator[None]:
    """Run helpers during the block, and cancel the helpers afterwards. An error of a helper crashes the run."""
    helpers = [asyncio.ensure_future(control.guarded(helper)) for helper in work]
    try:
        yield
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)


def read_commands(
    actions: Mapping[str, Callable[[], None]], ended: Callable[[], None], misunderstood: Callable[[str], None]
) -> None:
    """Read commands on standard input: JSON lines, ``{"op": "pause"}``. Returns at once.

    The running loop calls the action of each line, and ``ended`` at the end of the stream.
    """
    loop = asyncio.get_running_loop()

    def ask(act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run has ended
            loop.call_soon_threadsafe(act)

    def listen() -> None:
        # Not sys.stdin: Python aborts at exit while a thread has the lock of the buffer.
        with contextlib.suppress(OSError), open(0, "rb", buffering=0, closefd=False) as stdin:
            for line in stdin:
                try:
                    ask(actions[json.loads(line)["op"]])
                except (ValueError, KeyError, TypeError):
                    misunderstood(f"{line[:80]!r}")
        ask(ended)

    threading.Thread(target=listen, daemon=True).start()
