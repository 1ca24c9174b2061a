"""Where random attempts come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, repeat
from random import Random
from typing import Final, NamedTuple

from costmodel.distribution import Distribution
from costmodel.simulation import drawer

CHUNK: Final = 512
"""Attempts that are drawn at a time."""


class Try(NamedTuple):
    """One attempt at a rollout, with a sandbox made for it and with one that was ready. ns."""

    ok: bool
    held_ns: int  # by the worker, from when its create is let through
    clock_ns: int  # the sandbox's, as the provider bills it
    warm_ok: bool
    warm_ns: int
    warm_clock_ns: int

    @classmethod
    def plain(cls, held_ns: int, *, ok: bool = True, clock_ns: int | None = None) -> Try:
        """An attempt that a ready sandbox makes no difference to."""
        clock_ns = held_ns if clock_ns is None else clock_ns
        return cls(ok, held_ns, clock_ns, ok, held_ns, clock_ns)

    def scaled(self, factor: int) -> Try:
        """The same, ``factor`` times as long."""
        return Try(
            self.ok,
            self.held_ns * factor,
            self.clock_ns * factor,
            self.warm_ok,
            self.warm_ns * factor,
            self.warm_clock_ns * factor,
        )


class Source:
    """Attempts that are drawn independently of each other, each as often as its weight says."""

    def __init__(self, tries: Iterable[tuple[Try, int]]) -> None:
        """Attempts with their whole weights; at least one above 0."""
        pairs = [(one, weight) for one, weight in tries if weight]
        self.tries: Sequence[Try] = [one for one, _ in pairs]
        self.weights = [weight for _, weight in pairs]
        self.size = sum(self.weights)
        self.failures = sum(weight for one, weight in pairs if not one.ok) / self.size

    # Where nothing is simulated, nobody asks for the rest.

    @cached_property
    def mean_ns(self) -> float:
        """How long an attempt holds its worker."""
        return sum(one.held_ns * weight for one, weight in zip(self.tries, self.weights, strict=True)) / self.size

    @cached_property
    def warm_mean_ns(self) -> float:
        """The same with a sandbox that is ready."""
        return sum(one.warm_ns * weight for one, weight in zip(self.tries, self.weights, strict=True)) / self.size

    @property
    def saved_ns(self) -> float:
        """By a sandbox that is ready."""
        return max(0.0, self.mean_ns - self.warm_mean_ns)

    @cached_property
    def longest_ns(self) -> int:
        """That an attempt holds its worker."""
        return max(one.held_ns for one in self.tries)

    @cached_property
    def shortest_ns(self) -> int:
        """The same with a sandbox that is ready."""
        return min(one.warm_ns for one in self.tries)

    @classmethod
    def of(cls, law: Distribution) -> Source:
        """Attempts that succeed, and hold their sandbox as long as their worker."""
        return cls((Try.plain(value), count) for value, count in zip(law.values, law.counts, strict=True))

    def mixed(self, own: int, other: Source, weight: int) -> Source:
        """Of ``own + weight`` attempts, ``own`` are drawn from this source and ``weight`` from the other."""
        here, there = own * other.size, weight * self.size
        return Source(
            [(one, here * w) for one, w in zip(self.tries, self.weights, strict=True)]
            + [(one, there * w) for one, w in zip(other.tries, other.weights, strict=True)]
        )

    def scaled(self, factor: int) -> Source:
        """The same attempts, ``factor`` times as long."""
        return Source((one.scaled(factor), weight) for one, weight in zip(self.tries, self.weights, strict=True))

    def draws(self, rng: Random) -> Iterator[Try]:
        """Attempts without end."""
        draw = drawer(Distribution(dict(enumerate(self.weights))), rng)
        return map(self.tries.__getitem__, chain.from_iterable(map(draw, repeat(CHUNK))))  # type: ignore[arg-type]
