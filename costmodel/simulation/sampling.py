"""Random makespans of N jobs on W workers, exact in distribution and without a heap.

With jobs drawn independently it does not matter which worker takes which job: each worker is a renewal stream of
its own, and the makespan follows from the W streams' last epochs. ``streams`` draws every job; ``leap`` draws the sum
of many jobs at once, by its first three moments, so that its cost does not grow with N.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache, reduce
from itertools import accumulate, chain, islice, repeat
from random import Random

from costmodel.statistics.distribution import Distribution

Draw = Callable[[int], Iterator[float]]
"""Draws that many durations, whole ns."""

MIN_LEAP = 24
"""Fewer jobs than this are drawn one by one: their sum is not near enough to its three moments."""
SURELY = 5.0
"""Standard deviations that a worker stays away from the end of the queue: one in three million."""
EXACT = 2**53
"""Below this a float holds whole ns exactly, and adds in half the time."""


def drawer(law: Distribution, rng: Random, number: type[float] = int) -> Draw:
    """An unbiased sampler of the law, several times faster than ``rng.choices`` for up to 65,536 values."""
    floats = number is float
    if law.size > 65_536:
        values, below = _cumulative(law, floats)
        return lambda count: iter(rng.choices(values, cum_weights=below, k=count))
    table = _table(law, floats)
    if len(table) == 1:
        return lambda count: repeat(table[0], count)
    return _byte_drawer(table, rng) if len(table) <= 256 else _word_drawer(_words(law, floats), rng)


# What is drawn from, once for the hundreds of runs that are simulated of one law.


@lru_cache(maxsize=8)
def _cumulative(law: Distribution, floats: bool) -> tuple[list[float], list[float]]:
    below: list[float] = list(law.cumulative)
    if law.size < EXACT:  # the same draws: two floats are compared faster than a float and an int
        below = [float(count) for count in below]
    return _values(law, floats), below


@lru_cache(maxsize=8)
def _table(law: Distribution, floats: bool) -> list[float]:
    """Every value as often as it was seen."""
    return list(chain.from_iterable(map(repeat, _values(law, floats), law.counts)))


def _values(law: Distribution, floats: bool) -> list[float]:
    return [float(value) for value in law.values] if floats else list(law.values)


@lru_cache(maxsize=8)
def _words(law: Distribution, floats: bool) -> list[float]:
    """The table again and again, as often as 16 bits have room for all of it."""
    table = _table(law, floats)
    return table * (65_536 // len(table))


@lru_cache(maxsize=256)
def _bytes(size: int) -> tuple[bytes, bytes]:
    """Of each byte the place in a table of this size, and the bytes beyond the last multiple of it."""
    return bytes(byte % size for byte in range(256)), bytes(range(256 // size * size, 256))


def _byte_drawer(table: list[float], rng: Random) -> Draw:
    """One random byte per draw; bytes beyond the last multiple of the table's size are rejected."""
    index, rejected = _bytes(len(table))
    factor = 256 / (256 - len(rejected))

    def draw(count: int) -> Iterator[float]:
        indices = b""
        while (missing := count - len(indices)) > 0:
            indices += rng.randbytes(_padded(missing, factor)).translate(index, rejected)
        return map(table.__getitem__, indices[:count])

    return draw


def _word_drawer(words: list[float], rng: Random) -> Draw:
    """The same with 16 random bits per draw, from as many values as are whole tables."""
    usable = len(words)

    def draw(count: int) -> Iterator[float]:
        drawn: list[float] = []
        while (missing := count - len(drawn)) > 0:
            bits = array("H", rng.randbytes(2 * _padded(missing, 65_536 / usable)))
            drawn += [words[word] for word in bits if word < usable]
        return islice(drawn, count)

    return draw


def _padded(count: int, factor: float) -> int:
    """How many to draw so that after rejection, which keeps 1/factor, ``count`` are left almost surely."""
    return int(count * factor + 8 * math.sqrt(count * (factor - 1) * factor)) + 16


def streams(law: Distribution, jobs: int, workers: int, rng: Random) -> int:
    """One random makespan in ns; every job is drawn: O(N) time, O(W) memory."""
    draw = drawer(law, rng, float if law.values[-1] * jobs < EXACT * workers else int)
    return _simulated(law, jobs, workers, rng, lambda count: int(sum(draw(count))))


def leap(law: Distribution, jobs: int, workers: int, rng: Random) -> int:
    """One random makespan in ns; jobs that surely start are drawn as sums: O(W log log N) time, O(W) memory."""
    return _simulated(law, jobs, workers, rng, _three_moments(law, rng))


def _simulated(law: Distribution, jobs: int, workers: int, rng: Random, advance: Callable[[int], int]) -> int:
    """Move each worker on by as many jobs as surely start, again and again; draw the rest one by one.

    ``advance`` draws the sum of that many jobs.
    """
    if jobs <= workers or not law.mean:
        return int(max(drawer(law, rng)(jobs), default=0))
    mean, doubt = law.mean, SURELY * law.sd / law.mean
    left_over = workers * law.second_moment / (2 * mean)
    free_at = [0] * workers
    while True:
        margin = law.values[-1] + SURELY * law.sd * math.sqrt(jobs) / workers
        busy_until = (sum(free_at) + jobs * mean - left_over) / workers - margin
        if busy_until - min(free_at) < mean * MIN_LEAP:
            return _last_end(free_at, jobs, law, rng)
        taken = leapt = 0
        for worker, free in enumerate(free_at):
            span = (busy_until - free) / mean
            if span >= MIN_LEAP and (count := int(span - doubt * math.sqrt(span))) >= MIN_LEAP:
                free_at[worker] = free + advance(count)
                taken += count
                leapt += 1
        jobs -= taken
        if leapt < max(1, workers // 20):
            return _last_end(free_at, jobs, law, rng)


def _three_moments(law: Distribution, rng: Random) -> Callable[[int], int]:
    """Draws the sum of ``count`` jobs: normal, skewed as Cornish and Fisher do, on the law's own lattice."""
    lowest = law.values[0]
    pitch = reduce(math.gcd, [value - lowest for value in law.values])
    gauss, sqrt, total, size, sd = rng.gauss, math.sqrt, law.total, law.size, law.sd
    cubes = sum([seen * (value - law.mean) ** 3 for value, seen in zip(law.values, law.counts, strict=True)])
    skew = cubes / size / sd**2 / 6 if sd else 0.0

    def advance(count: int) -> int:
        if not pitch:
            return count * lowest
        z = gauss(0.0, 1.0)
        deviation = round(sd * sqrt(count) * z + skew * (z * z - 1))
        least = count * lowest
        steps = (count * total // size - least + deviation) // pitch  # exact: a float has too few digits for 1e15
        return least + steps * pitch if steps > 0 else least

    return advance


def _last_end(free_at: list[int], jobs: int, law: Distribution, rng: Random) -> int:
    """When the last of ``jobs`` ends, if worker w takes its first one at ``free_at[w]``."""
    latest = max(free_at) + (jobs // len(free_at) + 1_000) * law.values[-1]
    number = float if latest < EXACT else int
    draw = drawer(law, rng, number)
    mean_end = (sum(free_at) + jobs * law.mean) / len(free_at)
    spread = 4 * law.sd / law.mean
    at_least = law.values[-1] / law.mean + 3
    lengths = []
    for free in free_at:
        expected = max((mean_end - free) / law.mean, 0.0)
        lengths.append(int(expected + spread * math.sqrt(expected) + at_least))
    drawn = draw(sum(lengths))
    epochs = [
        list(accumulate(islice(drawn, length), initial=number(free)))
        for length, free in zip(lengths, free_at, strict=True)
    ]
    while (end := _makespan_of(epochs, jobs)) is None:
        middle = sorted(path[-1] for path in epochs)[len(epochs) // 2]
        for path in epochs:
            if path[-1] <= middle:
                path.extend(islice(accumulate(draw(12), initial=path[-1]), 1, None))
    return int(end)


def _makespan_of(epochs: list[list[float]], jobs: int) -> float | None:
    """When the last of ``jobs`` ends, given when each worker gets free; None if the epochs do not reach that far.

    The last job starts at the ``jobs``-th smallest epoch; a worker's next epoch after it is when it is done.
    """

    def starts(until: float) -> int:
        return sum(map(bisect_right, epochs, repeat(until)))

    before: float = -1
    until = min(path[-1] for path in epochs) - 1
    started, enough = 0, starts(until)
    if enough < jobs:
        return None
    while enough - started > len(epochs) and until - before > 1:
        middle = (before + until) // 2
        if (count := starts(middle)) < jobs:
            before, started = middle, count
        else:
            until, enough = middle, count
    window = sorted(
        chain.from_iterable(path[bisect_right(path, before) : bisect_right(path, until)] for path in epochs)
    )
    last_start = window[jobs - started - 1]
    at_once = jobs - started - bisect_left(window, last_start)  # jobs that start at this very instant
    end = last_start
    for path in epochs:
        index = bisect_left(path, last_start)
        while at_once and path[index] == last_start:
            at_once -= 1
            index += 1
        end = max(end, path[index])
    return end
