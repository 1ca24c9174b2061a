"""Where random attempts come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress, repeat
from operator import not_
from random import Random
from typing import Final, NamedTuple, Self

from costmodel.simulation.sampling import drawer
from costmodel.statistics.distribution import Distribution

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
        self._begin(lambda: pairs, sum(weight for _, weight in pairs), sum(w for one, w in pairs if not one.ok))

    def _begin(self, pairs: Callable[[], Iterable[tuple[Try, int]]], size: int, failed: int) -> None:
        self._told, self._failed = pairs, failed
        self.size = size  # the sum of the weights
        self.failures = failed / size

    @classmethod
    def _of(cls, pairs: Callable[[], Iterable[tuple[Try, int]]], size: int, failed: int) -> Self:
        found = cls.__new__(cls)
        found._begin(pairs, size, failed)
        return found

    @classmethod
    def of_columns(cls, weights: Sequence[int], tries: Sequence[Sequence[int]]) -> Self:
        """Attempts by column: the fields of a ``Try`` in their order."""
        failed = sum(compress(weights, map(not_, tries[0])))
        return cls._of(
            lambda: zip(map(Try._make, zip(*tries, strict=True)), weights, strict=True), sum(weights), failed
        )

    # Where nothing is simulated, nobody asks for the rest.

    @cached_property
    def _pairs(self) -> list[tuple[Try, int]]:
        return [(one, weight) for one, weight in self._told() if weight]

    @cached_property
    def tries(self) -> Sequence[Try]:
        """Each that has a weight."""
        return [one for one, _ in self._pairs]

    @cached_property
    def weights(self) -> Sequence[int]:
        """Of each of them."""
        return [weight for _, weight in self._pairs]

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
        return self._of(
            lambda: [
                *((one, here * w) for one, w in zip(self.tries, self.weights, strict=True)),
                *((one, there * w) for one, w in zip(other.tries, other.weights, strict=True)),
            ],
            here * self.size + there * other.size,
            here * self._failed + there * other._failed,
        )

    def scaled(self, factor: int) -> Source:
        """The same attempts, ``factor`` times as long."""
        return self._of(
            lambda: ((one.scaled(factor), weight) for one, weight in zip(self.tries, self.weights, strict=True)),
            self.size,
            self._failed,
        )

    def draws(self, rng: Random) -> Iterator[Try]:
        """Attempts without end."""
        draw = drawer(Distribution(dict(enumerate(self.weights))), rng)
        return map(self.tries.__getitem__, chain.from_iterable(map(draw, repeat(CHUNK))))  # type: ignore[arg-type]
