"""Suspension, forks, recycling and builds: changes in the life of a sandbox."""

from __future__ import annotations

from typing import Final, NamedTuple

ACTIONS: Final = {"suspend": "suspend_after_s", "fork": "fork_s", "recycle": "recycle_s", "prebuild": "build_s"}
"""Action of a life cycle → field of ``TrainingRun``; ``prebuild`` removes builds."""


class Suspension(NamedTuple):
    """Idle time before a suspension, and the durations of suspending and resuming."""

    after_ns: int
    suspend_ns: int
    resume_ns: int

    def split(self, pause_ns: float) -> tuple[float, float]:
        """Return the delay of the next action, and the suspended time, in ns, for one pause."""
        awake_ns = self.after_ns + self.suspend_ns
        if pause_ns <= self.after_ns:
            return 0.0, 0.0
        return self.resume_ns + max(0.0, awake_ns - pause_ns), max(0.0, pause_ns - awake_ns)
