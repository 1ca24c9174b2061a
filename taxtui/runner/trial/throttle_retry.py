"""Retries of throttled requests, at most ``MAX_TRIES``. Their waiting time is ``queued``, apart from every latency."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from taxtui.sandboxes.kit.retry import Retry

MAX_TRIES: Final = 12
FIRST_BACKOFF_S: Final = 0.25
MAX_BACKOFF_S: Final = 30.0


class ThrottleRetry(Retry):
    """Repeats throttled requests of one trial and adds up what that cost in ``queued_ns``."""

    def __init__(self, source: random.Random, announce: Callable[[float], None]) -> None:
        """``source``: of the jitter. ``announce`` receives each wait in seconds before it begins."""
        super().__init__(
            first_s=FIRST_BACKOFF_S, longest_s=MAX_BACKOFF_S, tries=MAX_TRIES, announce=announce, source=source
        )
