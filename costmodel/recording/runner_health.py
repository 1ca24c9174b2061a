"""Health of the measuring process: over a whole recording and in each second."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Final

from costmodel.recording.events import Health

LAG_LIMIT_NS: Final = 5_000_000
CPU_LIMIT_PERMILLE: Final = 800
FLOOR_LIMIT_NS: Final = 5_000_000
"""Spawning ``true`` took .6 to 1.0 ms in every shipped recording, and 7 ms at a load of ten per core.

Above this limit each command waits for a CPU, so every second of the measuring process is a bad one.
"""
DISTURBED_SHARE: Final = 0.5
"""Largest share of a trial in bad seconds without disturbance; a row is disturbed if its median trial is.

A disturbed row has no clean half to compare with. On such a machine a measurement gave twice the worker-hours and half
the ratio of the idle machine.
"""


@dataclass(slots=True)
class WorkerFitness:
    """All seconds of one measuring process. A second extends from the previous report to its own."""

    _seconds: list[Health] = field(default_factory=list)
    _bad: list[tuple[int, int]] = field(default_factory=list)

    def add(self, second: Health) -> None:
        """Add the next second."""
        if second.lag_p99_ns > LAG_LIMIT_NS or second.cpu_permille > CPU_LIMIT_PERMILLE:
            self._bad.append((self._seconds[-1].at_ns if self._seconds else 0, second.at_ns))
        self._seconds.append(second)

    @property
    def problems(self) -> list[str]:
        """Reasons for a warning: more than one second in a hundred is late, or more than half are busy."""
        late, busy = self.lag_p99_ns > LAG_LIMIT_NS, self.cpu_permille > CPU_LIMIT_PERMILLE
        return ["loop lag"] * late + ["client CPU"] * busy

    def within(self, start_ns: int, end_ns: int) -> list[Health]:
        """Return the seconds between two instants."""
        first = bisect_left(self._seconds, start_ns, key=lambda second: second.at_ns)
        return self._seconds[first : bisect_right(self._seconds, end_ns, key=lambda second: second.at_ns)]

    def share(self, start_ns: int, end_ns: int) -> float:
        """Return the share of bad seconds between two instants."""
        shared_ns = 0
        for began_ns, ended_ns in self._bad[bisect_left(self._bad, start_ns, key=lambda bad: bad[1]) :]:
            if began_ns >= end_ns:
                break
            shared_ns += min(end_ns, ended_ns) - max(start_ns, began_ns)
        return shared_ns / (end_ns - start_ns) if end_ns > start_ns else 0.0

    @property
    def lag_p99_ns(self) -> int:
        """Lag at rank ⌈0.99·n⌉: one bad second is a warning in a short run, not in an hour; 0: no second."""
        lags_ns = sorted(second.lag_p99_ns for second in self._seconds)
        return lags_ns[-1 - len(lags_ns) // 100] if lags_ns else 0

    @property
    def cpu_permille(self) -> int:
        """CPU time at rank ⌈n/2⌉; 0: no second."""
        cpus = sorted(second.cpu_permille for second in self._seconds)
        return cpus[(len(cpus) - 1) // 2] if cpus else 0
