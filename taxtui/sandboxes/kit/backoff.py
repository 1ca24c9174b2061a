"""How long to wait before a refused request is repeated."""

from __future__ import annotations

import random


def pause_s(tries: int, advice_s: float | None, *, first_s: float, longest_s: float, source: random.Random) -> float:
    """The provider's advice with a little jitter, else back-off with a lot: many must not march in step.

    ``tries``: how many requests were refused before this one.
    """
    if advice_s is not None:
        return advice_s * source.uniform(1.0, 1.1)
    return min(longest_s, first_s * 2.0 ** min(tries, 64)) * source.uniform(0.5, 1.0)
