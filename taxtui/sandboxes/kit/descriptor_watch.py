"""Being told that there is something to read, for descriptors that are watched for a moment only.

A short command's pipes and its end are three of them. The event loop takes its time to learn and to forget one; a
Linux epoll within the loop's own, which the loop learns of once, takes a system call.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Final, Protocol
from weakref import WeakKeyDictionary

_AT_ONCE: Final = 256  # of what is ready; the rest is told in the loop's next turn


class DescriptorWatch(Protocol):
    """What watches descriptors for one event loop."""

    def add_reader(self, fd: int, callback: Callable[[], None]) -> object:
        """Have ``callback`` called whenever ``fd`` can be read, also at its end, until it is removed."""
        ...

    def remove_reader(self, fd: int) -> object:
        """No longer; nothing happens where it is not watched. Before it is closed."""
        ...


class _Epoll:
    """An epoll that the loop watches as one descriptor."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        loop.add_reader(self._epoll.fileno(), self._ready)

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        if fd not in self._callbacks:
            self._epoll.register(fd, select.EPOLLIN)
        self._callbacks[fd] = callback

    def remove_reader(self, fd: int) -> None:
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def _ready(self) -> None:
        for fd, _ in self._epoll.poll(0, _AT_ONCE):
            if callback := self._callbacks.get(fd):  # not removed by one before it
                callback()


_OF_LOOPS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Epoll]] = WeakKeyDictionary()


def watch_of(loop: asyncio.AbstractEventLoop) -> DescriptorWatch:
    """What watches for this loop: one for all, for as long as there is the loop."""
    if not hasattr(select, "epoll"):  # macOS
        return loop
    if (known := _OF_LOOPS.get(loop)) is None:
        known = _OF_LOOPS[loop] = _Epoll(loop)
    return known
