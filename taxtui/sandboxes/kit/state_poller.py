"""Look up the states of many sandboxes in few requests."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from taxtui.errors import SubstrateError
from taxtui.sandboxes.kit.retry import LookupThrottle, Retry
from taxtui.sandboxes.protocol import Marks

S = TypeVar("S")

SOON_S: Final = 10.0
"""Time limit for a state that explains a failure: while the provider throttles, the failure is reported without it."""


class Lookup(NamedTuple, Generic[S]):
    """A state, and how much later than without throttling it was looked up."""

    state: S | None  # None: the provider does not know the sandbox, or not yet
    late_ns: int


class StatePoller(Generic[S]):
    """Looks up the states of all sandboxes that wait, in one request per interval and batch.

    Providers throttle by requests: 200 sandboxes that each ask every second would be refused, two batches are not.
    A throttled request is repeated here: one pause for all sandboxes that wait for it.
    """

    def __init__(
        self, describe: Callable[[list[str]], Awaitable[Mapping[str, S]]], interval_s: float, batch: int = 100
    ) -> None:
        """``describe`` takes at most ``batch`` ids; what its answer lacks does not exist."""
        self.interval_ns = round(interval_s * 1e9)
        self._describe = describe
        self._batch = batch
        self._waiting: dict[str, list[asyncio.Future[Lookup[S]]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._next_ns = 0
        self._throttle = LookupThrottle()

    async def next(self, handle: str) -> Lookup[S]:
        """The result of the next request, however long it is throttled. Raises other errors of ``describe``."""
        future: asyncio.Future[Lookup[S]] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(handle, []).append(future)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        return await future

    def report_throttling(self, marks: Marks) -> None:
        """A notice of the throttling since the last report, to the sandbox that asks first: one wait for all."""
        self._throttle.report(marks)

    async def soon(self, handle: str) -> Lookup[S] | None:
        """As ``next``, or None without an answer within ``SOON_S``."""
        with contextlib.suppress(SubstrateError, TimeoutError):
            async with asyncio.timeout(SOON_S):
                return await self.next(handle)
        return None

    async def close(self) -> None:
        """Stop; every ``next`` that still waits is cancelled."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        _cancel(self._waiting)

    async def _look(self) -> None:
        while self._waiting:
            await asyncio.sleep(max(0, self._next_ns - time.monotonic_ns()) / 1e9)
            self._next_ns = time.monotonic_ns() + self.interval_ns
            waiting, self._waiting = self._waiting, {}
            handles = list(waiting)
            try:
                for at in range(0, len(handles), self._batch):
                    await self._answer({handle: waiting[handle] for handle in handles[at : at + self._batch]})
            finally:
                _cancel(waiting)

    async def _answer(self, batch: Mapping[str, list[asyncio.Future[Lookup[S]]]]) -> None:
        retry = Retry(first_s=self.interval_ns / 1e9)
        try:
            states = await retry(lambda: self._describe(list(batch)))
        except SubstrateError as error:
            for future in itertools.chain.from_iterable(batch.values()):
                if not future.done():
                    future.set_exception(error)
            return
        self._throttle.add(retry.queued_ns)
        for handle, futures in batch.items():
            for future in futures:
                if not future.done():
                    future.set_result(Lookup(states.get(handle), retry.queued_ns))


def _cancel(waiting: Mapping[str, list[asyncio.Future[Lookup[S]]]]) -> None:
    for future in itertools.chain.from_iterable(waiting.values()):
        future.cancel()
