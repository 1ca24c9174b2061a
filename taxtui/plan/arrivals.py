"""Arrivals: when the trials of a block start."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Final, Literal, get_args

import msgspec

from taxtui.errors import UsageError

Kind = Literal["sequential", "closed", "burst", "open"]

ROUNDS: Final = 4
"""Trials of a closed block per slot, so that slots fall out of step as in a long run."""
MIN_RATE_PER_S: Final = 1 / 86400
MAX_RATE_PER_S: Final = 1_000_000
NOTATIONS: Final = ("sequential", "closed", "burst", "open:20/s")

_RATE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)/(s|m|h|d)(:poisson)?", re.ASCII)
_PER_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_OPEN_FIX: Final = "write open:20/s, open:1200/m or open:20/s:poisson"


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """When trials start. A block is a number of consecutive trials of one cell, which end before the next block.

    - ``sequential``: one after the other.
    - ``closed``: each of ``concurrency`` slots starts the next trial when the last has ended.
    - ``burst``: all of a block at once.
    - ``open``: by the clock, independently of earlier trials. A delay, for example without a free slot, is part of
      ``response``, counted from the scheduled start.
    """

    kind: Kind = "sequential"
    rate_per_s: float = 0.0  # of ``open``
    poisson: bool = False  # the gaps are exponential instead of equal

    def __str__(self) -> str:
        """The text for ``--arrival``, and the identity in recordings: trials of equal text are pooled."""
        if self.kind != "open":
            return self.kind
        return f"open:{self.rate_per_s:.12g}/s{':poisson' if self.poisson else ''}"

    def block(self, concurrency: int) -> int:
        """Return the number of trials of a full block; an open schedule has no pause."""
        return {"closed": concurrency * ROUNDS, "open": sys.maxsize}.get(self.kind, concurrency)

    def starts_ns(self, trials: int, source: Random) -> Sequence[int] | None:
        """Return the start of each trial in ns after the block, ascending; later if no slot is free.

        None: as soon as a slot is free. ``source``: random numbers, equal for the same block.
        """
        if self.kind != "open":
            return None
        if not self.poisson:
            return [round(trial * 1e9 / self.rate_per_s) for trial in range(trials)]
        return [round(s * 1e9) for s in accumulate(source.expovariate(self.rate_per_s) for _ in range(trials))]

    def wall_ns(self, trials: int, concurrency: int, trial_ns: float) -> float:
        """Return the approximate time for all trials of a cell, ``trial_ns`` each, by slots and schedule."""
        slots_ns = math.ceil(trials / concurrency) * trial_ns
        if self.kind != "open" or not trials:
            return slots_ns
        return max((trials - 1) * 1e9 / self.rate_per_s + trial_ns, slots_ns)


def parse(text: str) -> Arrival:
    """``closed``, ``burst``, ``open:20/s``, ``open:1200/m:poisson``.

    Raises:
        UsageError: any other text.
    """
    kind, colon, argument = text.partition(":")
    if kind not in get_args(Kind) or bool(colon) != (kind == "open"):
        raise UsageError(f"{text!r} is not an arrival", fix=f"write {', '.join(NOTATIONS[:-1])} or {NOTATIONS[-1]}")
    if kind != "open":
        return Arrival(kind=kind)  # type: ignore[arg-type]  # checked above
    rate = _RATE.fullmatch(argument)
    if rate is None:
        raise UsageError(f"{argument!r} is not a rate", fix=_OPEN_FIX)
    per_s = float(rate[1]) / _PER_S[rate[2]]
    if not MIN_RATE_PER_S <= per_s <= MAX_RATE_PER_S:
        raise UsageError(f"{argument!r} is not from 1/d to {MAX_RATE_PER_S:,}/s", fix=_OPEN_FIX)
    return Arrival(kind="open", rate_per_s=per_s, poisson=rate[3] is not None)
