"""One watch for all the pods of a run, however many there are.

The server ends every watch without a word after a while, and forgets old resource versions (410): the stream is
resumed in the first case and listed anew in the second. A state that was seen only after such a gap is reported with
the gap as its resolution.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import Final, Protocol

from taxtui.substrates.kubernetes.api import PodApi
from taxtui.substrates.kubernetes.failure import ApiRefused
from taxtui.substrates.kubernetes.pod import Pod

CATCH_UP_NS: Final = 100_000_000
"""What arrives within this time of a reconnection may have happened while nobody watched."""
MAX_PAUSE_S: Final = 5.0
_GONE: Final = 410


class PodFollower(Protocol):
    """Who wants to know what becomes of one pod. Called from the event loop; must not wait."""

    def changed(self, pod: Pod, at_ns: int, resolution_ns: int) -> None:
        """The pod is now in this state."""
        ...

    def deleted(self, at_ns: int) -> None:
        """The pod's object is gone."""
        ...

    def unwatched(self, error: ApiRefused) -> None:
        """The watch has ended for good."""
        ...


class PodWatch:
    """Follows every pod that a label selector matches in one namespace."""

    def __init__(self, api: PodApi, namespace: str, selector: str) -> None:
        """Begin to watch at once, in a task of its own."""
        self._api = api
        self._namespace = namespace
        self._selector = selector
        self._followers: dict[str, PodFollower] = {}
        self._seen: set[str] = set()  # those that were there when last looked
        self._blind_since_ns = time.monotonic_ns()
        self._error: ApiRefused | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    def follow(self, name: str, follower: PodFollower) -> None:
        """Report what becomes of the pod with this name. Call it before the pod is made."""
        self._followers[name] = follower
        if self._error is not None:
            follower.unwatched(self._error)

    def unfollow(self, name: str) -> None:
        """Stop reporting."""
        self._followers.pop(name, None)

    @property
    def ended(self) -> bool:
        """It tells nobody anything any more."""
        return self._task.done()

    async def close(self) -> None:
        """Stop watching."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        pause_s = 0.1
        while True:
            try:
                version = await self._list()
                pause_s = 0.1
                await self._follow_from(version)
            except ApiRefused as error:
                if error.final:
                    self._fail(error)
                    return
                if error.status == _GONE:
                    continue
                wait_s = error.retry_after_s if error.retry_after_s is not None else pause_s * random.uniform(0.5, 1.0)
                await asyncio.sleep(wait_s)
                pause_s = min(MAX_PAUSE_S, pause_s * 2)

    async def _list(self) -> str:
        pods, version, _ = await self._api.list(self._namespace, self._selector)
        now = time.monotonic_ns()
        for name in self._seen - {pod.metadata.name for pod in pods}:
            self._delete(name, now)
        for pod in pods:
            self._change(pod, now, now - self._blind_since_ns)
        self._blind_since_ns = now
        return version

    async def _follow_from(self, version: str) -> None:
        """Stream, and resume whenever the server ends the stream; a refusal or a broken connection ends it."""
        while True:
            began = time.monotonic_ns()
            gap_ns = began - self._blind_since_ns
            async for kind, pod in self._api.watch(self._namespace, self._selector, version):
                now = self._blind_since_ns = time.monotonic_ns()
                version = pod.metadata.resource_version or version
                if kind == "DELETED":
                    self._delete(pod.metadata.name, now)
                elif kind != "BOOKMARK":
                    self._change(pod, now, gap_ns if now - began < CATCH_UP_NS else 0)
            self._blind_since_ns = time.monotonic_ns()
            if self._blind_since_ns - began < CATCH_UP_NS:
                await asyncio.sleep(CATCH_UP_NS / 1e9)  # a server that keeps cutting us off is not hammered

    def _change(self, pod: Pod, at_ns: int, resolution_ns: int) -> None:
        self._seen.add(pod.metadata.name)
        if follower := self._followers.get(pod.metadata.name):
            follower.changed(pod, at_ns, resolution_ns)

    def _delete(self, name: str, at_ns: int) -> None:
        self._seen.discard(name)
        if follower := self._followers.get(name):
            follower.deleted(at_ns)

    def _fail(self, error: ApiRefused) -> None:
        self._error = error
        for follower in list(self._followers.values()):
            follower.unwatched(error)
