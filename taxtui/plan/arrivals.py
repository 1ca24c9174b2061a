"""The instants at which trials of a block start. A kind is one class here and its place in ``KINDS``."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import accumulate
from operator import or_
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, ClassVar, Final, Self

import msgspec

from taxtui.errors import UsageError
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.start_times import read_starts
from taxtui.recording import digest


class Arrival(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The base of all kinds, whose tag is their name: trials start as soon as one of ``concurrency`` lanes is free.

    A block is a number of trials of one cell that run without another cell's in between.
    """

    example: ClassVar[str] = ""
    """Example of the value after the name and a colon; "" where a kind takes none."""
    asks: ClassVar[str] = ""
    """Label of that value on the Setup screen."""
    narrowest: ClassVar[float] = 1
    widest: ClassVar[float] = math.inf
    """Lowest and highest sensible concurrency."""

    @classmethod
    def name(cls) -> str:
        return str(cls.__struct_config__.tag)

    @classmethod
    def of(cls, argument: str, folder: Path) -> Self:
        """From what is written after the colon: "" where there is no ``example``, and only there. Raises UsageError.

        A path in it is relative to ``folder``.
        """
        return cls()

    def __str__(self) -> str:
        """The text that ``--arrival`` takes. It is identity in recordings: trials pool with older ones of this text."""
        return self.name()

    def block(self, concurrency: int) -> int:
        """How many trials a full block has."""
        return concurrency

    def starts_ns(self, trials: int, source: Random) -> Sequence[int] | None:
        """When each of a block's trials is to start, in ns after the block, ascending; later if no lane is free.

        None: as soon as a lane is free. ``source`` decides what is left to chance; it is the same for the same block.
        """
        return None

    @property
    def max_trials(self) -> float:
        """How many trials a cell can have."""
        return math.inf

    def wall_ns(self, trials: int, concurrency: int, trial_ns: float) -> float:
        """How long all of a cell's trials take, about, if each takes ``trial_ns`` and blocks follow one another."""
        return math.ceil(trials / concurrency) * trial_ns


class Sequential(Arrival, frozen=True, tag="sequential"):
    """One after the other."""

    widest: ClassVar[float] = 1


class Closed(Arrival, frozen=True, tag="closed"):
    """Each lane starts its next trial when its last has ended."""

    ROUNDS: ClassVar[int] = 4
    """Lanes are kept filled for this many trials each, so that they fall out of step as in a long run."""

    def block(self, concurrency: int) -> int:
        return concurrency * self.ROUNDS


class Staggered(Arrival, frozen=True, tag="staggered"):
    """One every interval, held back while all lanes are taken."""

    interval_ns: int
    example: ClassVar[str] = "500ms"
    asks: ClassVar[str] = "every"

    @classmethod
    def of(cls, argument: str, folder: Path) -> Self:
        return cls(interval_ns=parse_duration_ns(argument))

    def __str__(self) -> str:
        return f"{self.name()}:{self.interval_ns / 1e6:g}ms"

    def starts_ns(self, trials: int, source: Random) -> Sequence[int]:
        return range(0, trials * self.interval_ns, self.interval_ns) if self.interval_ns else [0] * trials

    def wall_ns(self, trials: int, concurrency: int, trial_ns: float) -> float:
        """As ``Arrival.wall_ns``: the last trial of each block waits for its interval."""
        blocks = math.ceil(trials / concurrency)
        return blocks * trial_ns + self.interval_ns * (trials - blocks)


class Burst(Arrival, frozen=True, tag="burst"):
    """All of a block at once."""


class Open(Arrival, frozen=True, tag="open"):
    """Starts by the clock, independently of earlier trials: at a rate, or at the times of a trace.

    A delay, for example because no slot is free, is part of ``response``, which counts from the scheduled start.
    """

    rate_per_s: float = 0.0  # 0: at ``times_ns``
    poisson: bool = False  # the gaps are exponential instead of equal
    times_ns: tuple[int, ...] = ()
    example: ClassVar[str] = "20/s"
    asks: ClassVar[str] = "at"
    narrowest: ClassVar[float] = 2  # 1 is what is meant where nobody has said how many may be in flight

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
        """As ``Arrival.__str__``: the rate per s. A trace is named by its digest, as its path is nobody's business."""
        if self.times_ns:
            return f"{self.name()}:trace-{digest(*map(str, self.times_ns))}"
        return f"{self.name()}:{self.rate_per_s:.12g}/s{':poisson' if self.poisson else ''}"

    def block(self, concurrency: int) -> int:
        """As ``Arrival.block``: all, since a schedule that is drained in between would be another."""
        return sys.maxsize

    def starts_ns(self, trials: int, source: Random) -> Sequence[int]:
        if self.times_ns:
            return self.times_ns[:trials]
        if not self.poisson:
            return [round(trial * 1e9 / self.rate_per_s) for trial in range(trials)]
        return [round(s * 1e9) for s in accumulate(source.expovariate(self.rate_per_s) for _ in range(trials))]

    @property
    def max_trials(self) -> float:
        """As ``Arrival.max_trials``: what the trace has."""
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
"""Every kind, in the order in which they are offered."""

if TYPE_CHECKING:
    AnyArrival = Arrival
else:
    AnyArrival = reduce(or_, KINDS)  # what msgspec chooses from by the tag

_BY_NAME: Final = {kind.name(): kind for kind in KINDS}


def parse(text: str, folder: Path = Path()) -> Arrival:
    """``closed``, ``staggered:500ms``, ``open:20/s``: the name of a kind, and what it takes, a path from ``folder``.

    Raises:
        UsageError: no kind is written so.
    """
    name, _, argument = text.partition(":")
    kind = _BY_NAME.get(name)
    if kind is None or bool(argument) != bool(kind.example):
        raise UsageError(f"{text!r} is not an arrival", fix=f"write {one_of(KINDS)}")
    return kind.of(argument, folder)


def usual(concurrency: int) -> Arrival:
    """The one that is meant where none is written."""
    return Sequential() if concurrency == 1 else Closed()


def notation(kind: type[Arrival]) -> str:
    """How a kind is written: ``staggered:500ms``."""
    return f"{kind.name()}:{kind.example}" if kind.example else kind.name()


def one_of(kinds: Iterable[type[Arrival]]) -> str:
    """``closed, staggered:500ms or burst``."""
    *names, last = map(notation, kinds)
    return f"{', '.join(names)} or {last}" if names else last
