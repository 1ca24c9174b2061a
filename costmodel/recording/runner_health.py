"""Whether the measuring process was fit to measure: over a whole run, and in each second of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

LAG_LIMIT_NS: Final = 5_000_000
CPU_LIMIT_PERMILLE: Final = 800
FLOOR_LIMIT_NS: Final = 5_000_000
"""Spawning ``true`` took .6 to 1.0 ms in every shipped recording, and 7 ms at a load of ten per core.

Above this limit each command waits for a CPU, so every second of the measuring process is a bad one.
"""
DISTURBED_SHARE: Final = 0.5
"""Above this share of a trial in bad seconds, the trial is disturbed; a row is where its median trial is.

Then no clean half is left that the disturbed trials could be compared with. On such a machine one measurement gave
twice the worker-hours and half the ratio that the idle machine gives.
"""


class RunnerSecond(NamedTuple):
    """Health of the measuring process at the end of one second."""

    at_ns: int
    lag_p50_ns: int
    lag_p99_ns: int
    cpu_permille: int
    pool_waits: int


class Seconds:
    """The seconds of a recording and the bad ones among them; each reaches from the report before it to its own."""

    __slots__ = ("_bad", "_ends", "_last_ns", "_seconds")

    def __init__(self) -> None:
        """None yet."""
        self._bad: list[tuple[int, int]] = []
        self._ends: list[int] = []
        self._last_ns = 0
        self._seconds: list[RunnerSecond] = []

    def add(self, second: RunnerSecond) -> None:
        """One more second."""
        if second.lag_p99_ns > LAG_LIMIT_NS or second.cpu_permille > CPU_LIMIT_PERMILLE:
            self._bad.append((self._last_ns, second.at_ns))
            self._ends.append(second.at_ns)
        self._last_ns = second.at_ns
        self._seconds.append(second)

    def within(self, start_ns: int, end_ns: int) -> list[RunnerSecond]:
        """Return the seconds between two instants."""
        first = bisect_left(self._seconds, start_ns, key=lambda second: second.at_ns)
        return self._seconds[first : bisect_right(self._seconds, end_ns, key=lambda second: second.at_ns)]

    def share(self, start_ns: int, end_ns: int) -> float:
        """Return the share of bad seconds between two instants."""
        shared_ns = 0
        for began_ns, ended_ns in self._bad[bisect_left(self._ends, start_ns) :]:
            if began_ns >= end_ns:
                break
            shared_ns += min(end_ns, ended_ns) - max(start_ns, began_ns)
        return shared_ns / (end_ns - start_ns) if end_ns > start_ns else 0.0


@dataclass(slots=True)
class RunnerFitness:
    """Whether the measuring process was fit to measure: counts of its seconds, so that a stream can be judged."""

    seconds: int = 0
    late: int = 0  # of them, those whose loop lag (its p99 over the second) was above LAG_LIMIT_NS
    busy: int = 0  # those in which it took more of a core than CPU_LIMIT_PERMILLE

    def add(self, lag_p99_ns: int, cpu_permille: int) -> None:
        """One more second."""
        self.seconds += 1
        self.late += lag_p99_ns > LAG_LIMIT_NS
        self.busy += cpu_permille > CPU_LIMIT_PERMILLE

    @property
    def lagged(self) -> bool:
        """Whether ``lag_quantile_ns`` is above its limit: one late second in a hundred may be."""
        return self.late > self.seconds // 100

    @property
    def overworked(self) -> bool:
        """Whether ``cpu_median_permille`` is above its limit: half of the seconds may be busy."""
        return self.busy > self.seconds // 2

    @property
    def problems(self) -> list[str]:
        """Why what was measured is badged; empty when it is not."""
        return ["loop lag"] * self.lagged + ["client CPU"] * self.overworked

    def copy(self) -> Self:
        """A detached copy."""
        return replace(self)


class WorkerFitness:
    """The health of one measuring process over a whole recording, exactly."""

    def __init__(self) -> None:
        """Begin without a report."""
        self._lags_ns: list[int] = []
        self._cpus_permille: list[int] = []
        self._counts = RunnerFitness()

    def add(self, lag_p99_ns: int, cpu_permille: int) -> None:
        """One more second."""
        self._lags_ns.append(lag_p99_ns)
        self._cpus_permille.append(cpu_permille)
        self._counts.add(lag_p99_ns, cpu_permille)

    @property
    def problems(self) -> list[str]:
        """As ``RunnerFitness.problems``."""
        return self._counts.problems

    @property
    def lag_p99_ns(self) -> int:
        """As ``lag_quantile_ns``."""
        return lag_quantile_ns(self._lags_ns)

    @property
    def cpu_permille(self) -> int:
        """As ``cpu_median_permille``."""
        return cpu_median_permille(self._cpus_permille)


def lag_quantile_ns(lags_ns: Sequence[int]) -> int:
    """The seconds' lag at rank ⌈0.99·n⌉: one bad second badges a short run, not an hour. 0 without any."""
    return sorted(lags_ns)[-1 - len(lags_ns) // 100] if lags_ns else 0


def cpu_median_permille(cpus_permille: Sequence[int]) -> int:
    """The seconds' CPU at rank ⌈n/2⌉. 0 without any."""
    return sorted(cpus_permille)[(len(cpus_permille) - 1) // 2] if cpus_permille else 0
