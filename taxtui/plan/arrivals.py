"""When the trials of a block start. A kind is one class here and its place in ``KINDS``; nothing else knows kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, ClassVar, Final, Self

import msgspec

from taxtui.errors import UsageError
from taxtui.plan.durations import parse_duration_ns


class Arrival(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The base of all kinds, whose tag is their name: trials start as soon as one of ``concurrency`` lanes is free.

    A block is a number of trials of one cell that run without another cell's in between.
    """

    example: ClassVar[str] = ""
    """What is written after the name and a colon, where a kind takes something there; "" where it does not."""
    asks: ClassVar[str] = ""
    """What that is, in the word that Setup puts before its field."""
    widest: ClassVar[float] = math.inf
    """The greatest concurrency that makes sense."""

    @classmethod
    def name(cls) -> str:
        """As it is written."""
        return str(cls.__struct_config__.tag)

    @classmethod
    def of(cls, argument: str) -> Self:
        """From what is written after the colon: "" where there is no ``example``, and only there. Raises UsageError."""
        return cls()

    def __str__(self) -> str:
        """The text that ``--arrival`` takes. It is identity in recordings: trials pool with older ones of this text."""
        return self.name()

    def block(self, concurrency: int) -> int:
        """How many trials a full block has."""
        return concurrency

    def due_ns(self, trial: int) -> int | None:
        """When a block's trial number ``trial``, from 0, starts: so long after the block, or later if no lane is free.

        None: as soon as a lane is free. Never less than that of the trial before.
        """
        return None

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
        """As ``Arrival.block``."""
        return concurrency * self.ROUNDS


class Staggered(Arrival, frozen=True, tag="staggered"):
    """One every interval, held back while all lanes are taken."""

    interval_ns: int
    example: ClassVar[str] = "500ms"
    asks: ClassVar[str] = "every"

    @classmethod
    def of(cls, argument: str) -> Self:
        """As ``Arrival.of``: the interval."""
        return cls(interval_ns=parse_duration_ns(argument))

    def __str__(self) -> str:
        """As ``Arrival.__str__``: the interval in ms."""
        return f"{self.name()}:{self.interval_ns / 1e6:g}ms"

    def due_ns(self, trial: int) -> int:
        """As ``Arrival.due_ns``."""
        return trial * self.interval_ns

    def wall_ns(self, trials: int, concurrency: int, trial_ns: float) -> float:
        """As ``Arrival.wall_ns``: in each block the last waits for its turn before it takes its time."""
        blocks = math.ceil(trials / concurrency)
        return blocks * trial_ns + self.interval_ns * (trials - blocks)


class Burst(Arrival, frozen=True, tag="burst"):
    """All of a block at once."""


KINDS: Final[tuple[type[Arrival], ...]] = (Sequential, Closed, Staggered, Burst)
"""Every kind, in the order in which they are offered."""

if TYPE_CHECKING:
    AnyArrival = Arrival
else:
    AnyArrival = reduce(or_, KINDS)  # what msgspec chooses from by the tag

_BY_NAME: Final = {kind.name(): kind for kind in KINDS}


def parse(text: str) -> Arrival:
    """``closed``, ``staggered:500ms``: the name of a kind, and what it takes.

    Raises:
        UsageError: no kind is written so.
    """
    name, _, argument = text.partition(":")
    kind = _BY_NAME.get(name)
    if kind is None or bool(argument) != bool(kind.example):
        raise UsageError(f"{text!r} is not an arrival", fix=f"write {one_of(KINDS)}")
    return kind.of(argument)


def usual(concurrency: int) -> Arrival:
    """The one that is meant where none is written."""
    return Sequential() if concurrency == 1 else Closed()


def notation(kind: type[Arrival]) -> str:
    """How a kind is written: ``staggered:500ms``."""
    return f"{kind.name()}:{kind.example}" if kind.example else kind.name()


def one_of(kinds: Iterable[type[Arrival]]) -> str:
    """``closed, staggered:500ms or burst``."""
    *others, last = map(notation, kinds)
    return f"{', '.join(others)} or {last}" if others else last
