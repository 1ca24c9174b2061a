"""One watch for all objects of a kind in a run.

The server ends every watch without a message after a while: a new request continues the stream. The server forgets
old resource versions (410): the objects are listed again, after pauses that grow until an event arrives. The resolution
of a state after a gap is the length of the gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from taxtui.sandboxes.kit.retry import Retry
from taxtui.substrates.kubernetes.api import ClusterApi, Kept, ObjectKind
from taxtui.substrates.kubernetes.failure import ApiRefused

CATCH_UP_NS: Final = 100_000_000
"""An event so soon after a reconnection may be older than the reconnection."""
FIRST_PAUSE_S: Final = 0.1
MAX_PAUSE_S: Final = 5.0

T = TypeVar("T")


class ObjectFollower(NamedTuple, Generic[T]):
    """Callbacks for one object, called from the event loop."""

    changed: Callable[[T, int, int], None]  # new state, time, resolution in ns
    deleted: Callable[[], None]
    unwatched: Callable[[ApiRefused], None]  # the watch has ended for good


class ObjectWatch(Generic[Kept]):
    """Follows every object of a kind and a label selector."""

    def __init__(self, api: ClusterApi, kind: ObjectKind[Kept], selector: str) -> None:
        self._api = api
        self._kind = kind
        self._selector = selector
        self._followers: dict[str, ObjectFollower[Kept]] = {}
        self._seen: dict[str, Kept] = {}  # existing objects, in the last known state
        self._blind_since_ns = time.monotonic_ns()
        self._heard = False  # since the last list, from the stream
        self._error: ApiRefused | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    def follow(self, name: str, follower: ObjectFollower[Kept]) -> Kept | None:
        """Report every change of the object with this name from now on; return the last known state.

        For a future object, call this before the create.
        """
        self._followers[name] = follower
        if self._error is not None:
            follower.unwatched(self._error)
        return self._seen.get(name)

    def unfollow(self, name: str) -> None:
        self._followers.pop(name, None)

    @property
    def ended(self) -> bool:
        return self._task.done()

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        retry = Retry(first_s=FIRST_PAUSE_S, longest_s=MAX_PAUSE_S)
        while True:
            try:
                version = await self._list()
                await self._follow_from(version)
            except ApiRefused as error:
                if error.final:
                    self._error = error
                    for follower in list(self._followers.values()):
                        follower.unwatched(error)
                    return
                if self._heard:
                    retry.reset()
                self._heard = False
                await asyncio.sleep(retry.pause_s(error.retry_after_s))

    async def _list(self) -> str:
        objects, version = await self._api.list(self._kind, self._selector)
        now = time.monotonic_ns()
        for name in self._seen.keys() - {entry.metadata.name for entry in objects}:
            self._delete(name)
        for entry in objects:
            self._change(entry, now, now - self._blind_since_ns)
        self._blind_since_ns = now
        return version

    async def _follow_from(self, version: str) -> None:
        """Read the stream, and continue after a silent end; raises for a refusal or a broken connection."""
        while True:
            began = time.monotonic_ns()
            gap_ns = began - self._blind_since_ns
            async for event, about in self._api.watch(self._kind, self._selector, version):
                self._heard = True
                now = self._blind_since_ns = time.monotonic_ns()
                version = about.metadata.resource_version or version
                if event == "DELETED":
                    self._delete(about.metadata.name)
                elif event != "BOOKMARK":
                    self._change(about, now, gap_ns if now - began < CATCH_UP_NS else 0)
            self._blind_since_ns = time.monotonic_ns()
            if self._blind_since_ns - began < CATCH_UP_NS:
                await asyncio.sleep(CATCH_UP_NS / 1e9)  # spare a server that ends every stream at once

    def _change(self, about: Kept, at_ns: int, resolution_ns: int) -> None:
        self._seen[about.metadata.name] = about
        if follower := self._followers.get(about.metadata.name):
            follower.changed(about, at_ns, resolution_ns)

    def _delete(self, name: str) -> None:
        self._seen.pop(name, None)
        if follower := self._followers.get(name):
            follower.deleted()
