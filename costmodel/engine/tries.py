"""Where random attempts come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

    __slots__ = (
        "_index",
        "failures",
        "longest_ns",
        "mean_ns",
        "saved_ns",
        "shortest_ns",
        "tries",
        "warm_failures",
        "warm_mean_ns",
        "weights",
    )

    def __init__(self, tries: Iterable[tuple[Try, int]]) -> None:
        """Attempts with their whole weights; at least one above 0."""
        pairs = [(one, weight) for one, weight in tries if weight]
        self.tries: Sequence[Try] = [one for one, _ in pairs]
        self.weights = [weight for _, weight in pairs]
        self._index = Distribution(dict(enumerate(self.weights)))
        total = self._index.size
        self.mean_ns = sum(one.held_ns * weight for one, weight in pairs) / total
        self.warm_mean_ns = sum(one.warm_ns * weight for one, weight in pairs) / total
        self.saved_ns = max(0.0, self.mean_ns - self.warm_mean_ns)  # by a sandbox that is ready
        self.failures = sum(weight for one, weight in pairs if not one.ok) / total
        self.warm_failures = sum(weight for one, weight in pairs if not one.warm_ok) / total
        self.longest_ns = max(one.held_ns for one in self.tries)
        self.shortest_ns = min(one.warm_ns for one in self.tries)

    @classmethod
    def of(cls, law: Distribution) -> Source:
        """Attempts that succeed, and hold their sandbox as long as their worker."""
        return cls((Try.plain(value), count) for value, count in zip(law.values, law.counts, strict=True))

    def mixed(self, own: int, other: Source, weight: int) -> Source:
        """Of ``own + weight`` attempts, ``own`` are drawn from this source and ``weight`` from the other."""
        here, there = own * other._index.size, weight * self._index.size
        return Source(
            [(one, here * w) for one, w in zip(self.tries, self.weights, strict=True)]
            + [(one, there * w) for one, w in zip(other.tries, other.weights, strict=True)]
        )

    def scaled(self, factor: int) -> Source:
        """The same attempts, ``factor`` times as long."""
        return Source((one.scaled(factor), weight) for one, weight in zip(self.tries, self.weights, strict=True))

    def draws(self, rng: Random) -> Iterator[Try]:
        """Attempts without end."""
        draw = drawer(self._index, rng)
        return map(self.tries.__getitem__, chain.from_iterable(map(draw, repeat(CHUNK))))  # type: ignore[arg-type]
