"""Bill of a sandbox from its lifetime and CPU time."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from costmodel.units import NS_PER_HOUR

PARTS: Final = 10**12
"""Parts of a dollar: whole numbers keep sums over millions of attempts exact."""
PROVISIONED: Final = "provisioned"
ACTIVE: Final = "active"
GREATER: Final = "greater"
CpuBasis = Literal["provisioned", "active", "greater"]
"""Measure of vCPU-hours: requested vCPUs, used CPU time, or the larger."""
BILLED: Final = "billed"
FREE: Final = "free"
IdleBilling = Literal["billed", "free"]
"""Whether an idle sandbox is billed."""


def billed_ns(ns: int, minimum_ns: int, increment_ns: int) -> int:
    """Return billed time for ``ns`` of use: whole increments, at least the minimum; 0 without use."""
    return 0 if ns <= 0 else max(minimum_ns, -(-ns // increment_ns) * increment_ns)


class Meter(NamedTuple):
    """Rates of a sandbox of a certain size; a bill is in whole parts of a dollar times ns per hour."""

    exists: int  # per hour of existence, in parts
    cpu: int  # per hour of CPU time, in parts
    create: int
    included_milli: int  # vCPUs with CPU time in ``exists``
    minimum_ns: int
    increment_ns: int

    def billed(self, exists_ns: int, cpu_ns: int) -> int:
        """Return the bill for a lifetime and CPU time."""
        clock_ns = billed_ns(exists_ns, self.minimum_ns, self.increment_ns)
        beyond_ns = max(0, cpu_ns - self.included_milli * clock_ns // 1000)
        return self.exists * clock_ns + self.cpu * beyond_ns + self.create * (exists_ns > 0)

    @staticmethod
    def usd(billed: float) -> float:
        return billed / PARTS / NS_PER_HOUR
