"""Retries of throttled requests, at most ``MAX_TRIES``. Their waiting time is ``queued``, apart from every latency."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from taxtui.errors import Throttled
from taxtui.sandboxes.kit.backoff import pause_s

T = TypeVar("T")

MAX_TRIES: Final = 12
FIRST_BACKOFF_S: Final = 0.25
MAX_BACKOFF_S: Final = 30.0


class ThrottleRetry:
    """Repeats throttled requests of one trial and adds up what that cost in ``queued_ns``."""

    def __init__(self, source: random.Random, announce: Callable[[float], None]) -> None:
        """``source`` decides the jitter; ``announce`` is told each wait in seconds before it begins."""
        self.queued_ns = 0
        self._source = source
        self._announce = announce

    async def __call__(self, attempt: Callable[[], Awaitable[T]], *, resumes: bool = False) -> T:
        """The first answer that is not ``Throttled``. Refused requests and the waits after them are queued.

        With ``resumes`` an attempt goes on where the refused one stopped, as waiting for a sandbox that boots does:
        what passed before the refusal was not in vain, and only the waits are queued.

        Raises:
            Throttled: still refused at the last try.
        """
        for tries in range(MAX_TRIES - 1):
            began = time.monotonic_ns()
            try:
                return await attempt()
            except Throttled as throttled:
                wait_s = pause_s(
                    tries,
                    throttled.retry_after_s,
                    first_s=FIRST_BACKOFF_S,
                    longest_s=MAX_BACKOFF_S,
                    source=self._source,
                )
                if resumes:
                    began = time.monotonic_ns()
            self._announce(wait_s)
            await asyncio.sleep(wait_s)
            self.queued_ns += time.monotonic_ns() - began
        return await attempt()
