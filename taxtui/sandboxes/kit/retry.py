"""Repeat refused requests, and look up the states of many sandboxes in few requests."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from taxtui.errors import SubstrateError, SubstrateUnavailable, Throttled
from taxtui.sandboxes.protocol import Marks

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
"""First and longest pause after a refusal without advice; each pause doubles the previous."""
FIND_S: Final = 60.0
"""Time limit of a search for sandboxes."""

_JITTER: Final = random.Random()
_MOST_DOUBLINGS: Final = 64


class Retry:
    """Repeats a request until the provider accepts it; raises the last refusal when time or tries are used up.

    A pause is as long as the provider advises (``Throttled.retry_after_s``), plus a little jitter. Without advice the
    pause doubles from ``first_s`` to ``longest_s``, with much jitter: many sandboxes must not retry at the same
    instant.

    ``refusals`` counts the refusals in a row. ``queued_ns`` adds up the time of refused requests and of the following
    pauses. A caller with a private loop calls ``pause_s`` after a refusal and ``reset`` after a success.
    """

    def __init__(
        self,
        *,
        first_s: float | None = None,
        longest_s: float | None = None,
        within_s: float = math.inf,
        tries: int | None = None,
        on: type[Exception] = Throttled,
        announce: Callable[[float], object] = lambda wait_s: None,
        source: random.Random = _JITTER,
    ) -> None:
        """The limits of the retries.

        Args:
            first_s: first pause; ``FIRST_PAUSE_S`` by default.
            longest_s: longest pause; ``LONGEST_PAUSE_S`` by default.
            within_s: longest time from the first request to the beginning of the last.
            tries: most requests of one call.
            on: the errors to retry, by default refusals that may not last; every further error is raised at once.
            announce: receives each pause in seconds before it begins.
            source: of the jitter.
        """
        self.refusals = 0
        self.queued_ns = 0
        self._first_s = FIRST_PAUSE_S if first_s is None else first_s
        self._longest_s = LONGEST_PAUSE_S if longest_s is None else longest_s
        self._within_ns = within_s * 1e9
        self._tries = tries
        self._on = on
        self._announce = announce
        self._source = source

    async def __call__(self, request: Callable[[], Awaitable[T]], *, resumes: bool = False) -> T:
        """The first answer to ``request``.

        ``resumes``: a request continues the work of the refused request, and only the pauses count as throttled.
        """
        self.reset()
        first_ns = time.monotonic_ns()
        while True:
            began_ns = time.monotonic_ns()
            try:
                answer = await request()
            except Exception as error:
                wait_s = self._next_pause_s(error, first_ns)
                if wait_s is None:
                    raise
                if resumes:
                    began_ns = time.monotonic_ns()
            else:
                self.reset()
                return answer
            self._announce(wait_s)
            await asyncio.sleep(wait_s)
            self.queued_ns += time.monotonic_ns() - began_ns

    def pause_s(self, advice_s: float | None = None) -> float:
        """Count a refusal and return the pause after it."""
        refusals, self.refusals = self.refusals, self.refusals + 1
        if advice_s is not None:
            return advice_s * self._source.uniform(1.0, 1.1)
        longest_s = self._first_s * 2.0 ** min(refusals, _MOST_DOUBLINGS)
        return min(self._longest_s, longest_s) * self._source.uniform(0.5, 1.0)

    def reset(self) -> None:
        self.refusals = 0

    def _next_pause_s(self, error: Exception, first_ns: int) -> float | None:
        """The pause before the next request; None if there is none, and the caller raises ``error``."""
        if not isinstance(error, self._on) or (self._tries is not None and self.refusals + 1 >= self._tries):
            return None
        wait_s = self.pause_s(error.retry_after_s if isinstance(error, Throttled) else None)
        return wait_s if time.monotonic_ns() - first_ns + wait_s * 1e9 <= self._within_ns else None


async def find(request: Callable[[], Awaitable[T]]) -> T:
    """Repeat a search for sandboxes while it is throttled: clean-up must not stop at a throttle.

    Raises:
        SubstrateUnavailable: refused, or not answered within ``FIND_S``.
    """
    try:
        return await Retry(within_s=FIND_S)(request)
    except SubstrateUnavailable:
        raise
    except SubstrateError as error:
        raise SubstrateUnavailable(str(error)) from error


S = TypeVar("S")

SOON_S: Final = 10.0
"""Time limit of a lookup to explain a failure; under throttling the failure has no explanation."""


class Lookup(NamedTuple, Generic[S]):
    """A state, and the delay by throttling."""

    state: S | None  # None: the provider does not know the sandbox, or not yet
    late_ns: int


class StatePoller(Generic[S]):
    """Looks up the states of all waiting sandboxes, in a single request per interval and batch.

    Providers throttle by requests: 200 sandboxes with a request each per second would be refused, two batches are not.
    A throttled request is repeated here: a single pause for all waiting sandboxes.
    """

    def __init__(
        self, describe: Callable[[list[str]], Awaitable[Mapping[str, S]]], interval_s: float, batch: int = 100
    ) -> None:
        """``describe`` takes at most ``batch`` ids; an id without an answer does not exist."""
        self.interval_ns = round(interval_s * 1e9)
        self._describe = describe
        self._batch = batch
        self._waiting: dict[str, list[asyncio.Future[Lookup[S]]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._next_ns = 0
        self._throttled_ns = 0

    async def next(self, handle: str) -> Lookup[S]:
        """The result of the next request, however long it is throttled. Raises other errors of ``describe``."""
        future: asyncio.Future[Lookup[S]] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(handle, []).append(future)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        return await future

    def report_throttling(self, marks: Marks) -> None:
        """Report the throttling since the last report as a notice, to the first sandbox that asks."""
        waited_ns, self._throttled_ns = self._throttled_ns, 0
        if waited_ns:
            marks.notice(f"throttled while looking up states, waited {waited_ns / 1e9:.1f} s for all sandboxes at once")

    async def soon(self, handle: str) -> Lookup[S] | None:
        with contextlib.suppress(SubstrateError, TimeoutError):
            async with asyncio.timeout(SOON_S):
                return await self.next(handle)
        return None

    async def close(self) -> None:
        """Stop, and cancel every waiting ``next``."""
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
        retry = Retry(first_s=self.interval_ns / 1e9 or None)
        try:
            states = await retry(lambda: self._describe(list(batch)))
        except Exception as error:  # also an adapter's mistake: the callers report it
            for future in itertools.chain.from_iterable(batch.values()):
                if not future.done():
                    future.set_exception(error)
            return
        self._throttled_ns += retry.queued_ns
        for handle, futures in batch.items():
            for future in futures:
                if not future.done():
                    future.set_result(Lookup(states.get(handle), retry.queued_ns))


def _cancel(waiting: Mapping[str, list[asyncio.Future[Lookup[S]]]]) -> None:
    for future in itertools.chain.from_iterable(waiting.values()):
        future.cancel()
