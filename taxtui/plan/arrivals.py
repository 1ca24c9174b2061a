"""Arrivals: when the trials of a block start. Each kind is a class in ``KINDS``."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import accumulate, pairwise
from operator import or_
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, ClassVar, Final, Self

import msgspec

from costmodel import MAX_INT
from taxtui.errors import UsageError
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.number_lines import read_number_lines
from taxtui.recording import digest


class Arrival(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The base of all kinds: trials start as soon as one of ``concurrency`` slots is free. The tag is the name.

    A block is a number of consecutive trials of one cell.
    """

    example: ClassVar[str] = ""
    """Example of the value after the name and a colon; "" where a kind takes none."""
    narrowest: ClassVar[float] = 1
    widest: ClassVar[float] = math.inf
    """Lowest and highest sensible concurrency."""

    @classmethod
    def name(cls) -> str:
        return str(cls.__struct_config__.tag)

    @classmethod
    def of(cls, argument: str, folder: Path) -> Self:
        """Return the kind from the text after the colon, "" without ``example``. Raises ``UsageError``.

        A path is relative to ``folder``.
        """
        return cls()

    def __str__(self) -> str:
        """The text for ``--arrival``, and the identity in recordings: trials of equal text are pooled."""
        return self.name()

    def block(self, concurrency: int) -> int:
        """Return the number of trials of a full block."""
        return concurrency

    def starts_ns(self, trials: int, source: Random) -> Sequence[int] | None:
        """Return the start of each trial in ns after the block, ascending; later if no slot is free.

        None: as soon as a slot is free. ``source``: random numbers, equal for the same block.
        """
        return None

    @property
    def max_trials(self) -> float:
        """Highest number of trials of a cell."""
        return math.inf

    def wall_ns(self, trials: int, concurrency: int, trial_ns: float) -> float:
        """Return the approximate time for all trials of a cell, ``trial_ns`` each, block after block."""
        return math.ceil(trials / concurrency) * trial_ns


class Sequential(Arrival, frozen=True, tag="sequential"):
    """Trials follow one another."""

    widest: ClassVar[float] = 1


class Closed(Arrival, frozen=True, tag="closed"):
    """Each slot starts the next trial when the last has ended."""

    ROUNDS: ClassVar[int] = 4
    """Trials of a block per slot, so that slots fall out of step as in a long run."""

    def block(self, concurrency: int) -> int:
        return concurrency * self.ROUNDS


class Staggered(Arrival, frozen=True, tag="staggered"):
    """A trial every interval, or later when all slots are taken."""

    interval_ns: int
    example: ClassVar[str] = "500ms"

    @classmethod
    def of(cls, argument: str, folder: Path) -> Self:
        return cls(interval_ns=parse_duration_ns(argument))

    def __str__(self) -> str:
        return f"{self.name()}:{self.interval_ns / 1e6:g}ms"

    def starts_ns(self, trials: int, source: Random) -> Sequence[int]:
        return range(0, trials * self.interval_ns, self.interval_ns) if self.interval_ns else [0] * trials

    def wall_ns(self, trials: int, concurrency: int, trial_ns: float) -> float:
        """As ``Arrival.wall_ns``: the last trial of each block waits for an interval."""
        blocks = math.ceil(trials / concurrency)
        return blocks * trial_ns + self.interval_ns * (trials - blocks)


class Burst(Arrival, frozen=True, tag="burst"):
    """All of a block at once."""


class Open(Arrival, frozen=True, tag="open"):
    """Starts by the clock, independently of earlier trials: at a rate, or at the times of a trace.

    A delay, for example without a free slot, is part of ``response``, counted from the scheduled start.
    """

    rate_per_s: float = 0.0  # 0: at ``times_ns``
    poisson: bool = False  # the gaps are exponential instead of equal
    times_ns: tuple[int, ...] = ()
    example: ClassVar[str] = "20/s"
    narrowest: ClassVar[float] = 2  # 1 is the default of concurrency, too low for a schedule

    @classmethod
    def of(cls, argument: str, folder: Path) -> Self:
        """As ``Arrival.of``: ``20/s``, ``1200/m:poisson``, or a file of start times."""
        rate = _RATE.fullmatch(argument)
        if rate is None:
            if not (folder / argument).exists():
                raise UsageError(f"{argument!r} is neither a rate nor a file of start times", fix=_OPEN_FIX)
            return cls(times_ns=read_starts(folder / argument))
        per_s = float(rate[1]) / _PER_S[rate[2]]
        if not MIN_RATE_PER_S <= per_s <= MAX_RATE_PER_S:
            raise UsageError(f"{argument!r} is not from 1/d to {MAX_RATE_PER_S:,}/s", fix=_OPEN_FIX)
        return cls(rate_per_s=per_s, poisson=rate[3] is not None)

    def __str__(self) -> str:
        """As ``Arrival.__str__``: the rate per s. A trace is named by a digest, since paths are private."""
        if self.times_ns:
            return f"{self.name()}:trace-{digest(*map(str, self.times_ns))}"
        return f"{self.name()}:{self.rate_per_s:.12g}/s{':poisson' if self.poisson else ''}"

    def block(self, concurrency: int) -> int:
        """As ``Arrival.block``: all, because a schedule has no pause."""
        return sys.maxsize

    def starts_ns(self, trials: int, source: Random) -> Sequence[int]:
        if self.times_ns:
            return self.times_ns[:trials]
        if not self.poisson:
            return [round(trial * 1e9 / self.rate_per_s) for trial in range(trials)]
        return [round(s * 1e9) for s in accumulate(source.expovariate(self.rate_per_s) for _ in range(trials))]

    @property
    def max_trials(self) -> float:
        """As ``Arrival.max_trials``: the length of the trace."""
        return len(self.times_ns) or math.inf

    def wall_ns(self, trials: int, concurrency: int, trial_ns: float) -> float:
        """As ``Arrival.wall_ns``: by the schedule, or by the slots where these are too few."""
        if not trials:
            return 0.0
        last_ns = self.times_ns[trials - 1] if self.times_ns else (trials - 1) * 1e9 / self.rate_per_s
        return max(last_ns + trial_ns, math.ceil(trials / concurrency) * trial_ns)


_RATE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)/(s|m|h|d)(:poisson)?", re.ASCII)
_PER_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_OPEN_FIX: Final = "write open:20/s, open:1200/m, open:20/s:poisson, or open:FILE with a start time in s on each line"
MIN_RATE_PER_S: Final = 1 / 86400
MAX_RATE_PER_S: Final = 1_000_000

KINDS: Final[tuple[type[Arrival], ...]] = (Sequential, Closed, Staggered, Burst, Open)
"""Every kind, in the order of the Setup screen."""

if TYPE_CHECKING:
    AnyArrival = Arrival
else:
    AnyArrival = reduce(or_, KINDS)  # chosen by msgspec by the tag

_BY_NAME: Final = {kind.name(): kind for kind in KINDS}


def parse(text: str, folder: Path = Path()) -> Arrival:
    """``closed``, ``staggered:500ms``, ``open:20/s``: a kind with a value. Paths are relative to ``folder``.

    Raises:
        UsageError: no kind has this notation.
    """
    name, _, argument = text.partition(":")
    kind = _BY_NAME.get(name)
    if kind is None or bool(argument) != bool(kind.example):
        raise UsageError(f"{text!r} is not an arrival", fix=f"write {one_of(KINDS)}")
    return kind.of(argument, folder)


def usual(concurrency: int) -> Arrival:
    """Return the default arrival."""
    return Sequential() if concurrency == 1 else Closed()


def notation(kind: type[Arrival]) -> str:
    """How a kind is written: ``staggered:500ms``."""
    return f"{kind.name()}:{kind.example}" if kind.example else kind.name()


def one_of(kinds: Iterable[type[Arrival]]) -> str:
    """``closed, staggered:500ms or burst``."""
    *names, last = map(notation, kinds)
    return f"{', '.join(names)} or {last}" if names else last


MOST_STARTS: Final = 1_000_000
MOST_BYTES: Final = 64 << 20
_TRACE_FIX: Final = "write a time in s on each line, in ascending order; blank lines and # are skipped"


def read_starts(path: Path) -> tuple[int, ...]:
    """Return the times in ns after the first, ascending. The origin is free: seconds of a run, or Unix time.

    Raises:
        UsageError: the file is unreadable, has no time or too many, or a time is invalid or goes back.
    """
    numbered = read_number_lines(path, MOST_BYTES, "the start times", _TRACE_FIX)
    if not 0 < len(numbered) <= MOST_STARTS:
        raise UsageError(f"{path} holds {len(numbered):,} start times", fix=f"give from 1 to {MOST_STARTS:,}")
    times_s = [(n, _seconds(path, n, text)) for n, text in numbered]
    for (_, before_s), (n, time_s) in pairwise(times_s):
        if time_s < before_s:
            raise UsageError(f"{path}:{n}: the time is before the one above it", fix=_TRACE_FIX)
    first_s = times_s[0][1]
    return tuple(round((time_s - first_s) * 1e9) for _, time_s in times_s)


def _seconds(path: Path, number: int, text: str) -> float:
    try:
        time_s = float(text)
    except ValueError:
        time_s = math.nan
    if not abs(time_s) <= MAX_INT / 2e9:
        # The line stays unquoted: a foreign scenario may name any file.
        raise UsageError(f"{path}:{number}: the line is no time in s", fix=_TRACE_FIX)
    return time_s
