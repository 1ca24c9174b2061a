"""Work dealt out to forked processes, which have all that this one holds; they start in some milliseconds."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

_T = TypeVar("_T")
WORTH_TRIALS: Final = 50_000
"""Statistics of fewer are there before another process could have told its part."""


def forks() -> bool:
    """Whether this process can be forked: no thread that may hold a lock then, and not such a fork itself."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return False
    from multiprocessing import current_process

    return not current_process().daemon


def dealt(works: Sequence[Callable[[], _T]], trials: int) -> list[_T]:
    """What each of these gives, in their order: dealt out to a process per core, of which this is the first.

    Where that is worth it: they are told over so many trials; one after the other elsewhere. What they change stays in
    their process. One that raises there, or whose process ends, is done again here; so is what no process can be made
    for.
    """
    count = min(len(works), os.cpu_count() or 1) if trials >= WORTH_TRIALS else 1
    if count < 2 or not forks():
        return [work() for work in works]
    parts = [works[first::count] for first in range(count)]
    others = []
    try:
        with contextlib.suppress(OSError):  # no more processes or descriptors
            for part in parts[1:]:
                others.append(_forked(part))
        found = [[work() for work in parts[0]]]
        for (_, ours), part in zip(others, parts[1:], strict=False):
            try:
                found.append(ours.recv())
            except EOFError:
                found.append([work() for work in part])
        found += [[work() for work in part] for part in parts[1 + len(others) :]]
    finally:
        for process, ours in others:
            ours.close()
            process.kill()
            process.join()
    return [found[place % count][place // count] for place in range(len(works))]


def _forked(works: Sequence[Callable[[], _T]]) -> tuple[ForkProcess, Connection[None, list[_T]]]:
    """A process that has begun with these, and where it tells what they give. Raises ``OSError``."""
    from multiprocessing import get_context  # most never need it

    fork = get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    with theirs:
        process = fork.Process(target=_tell, args=(theirs, works), daemon=True)
        try:
            with interrupts_held():
                process.start()
        except OSError:
            ours.close()
            raise
    return process, ours


def _tell(theirs: Connection, works: Sequence[Callable[[], object]]) -> None:
    watch()
    with contextlib.suppress(Exception), theirs:  # what raises is done again by the process that has a voice
        theirs.send([work() for work in works])
    os._exit(0)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back here until the block ends, and in a process that the block starts until it calls ``watch``."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def watch(forget: Callable[[], None] | None = None) -> None:
    """In a process of ours: Ctrl-C is the parent's to answer, and a parent that was killed takes this process along.

    Args:
        forget: what this process has left behind goes first.
    """
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = parent_process()
    assert parent is not None

    def until_it_ends() -> None:
        parent.join()
        if forget is not None:
            forget()
        os._exit(1)

    threading.Thread(target=until_it_ends, daemon=True).start()
