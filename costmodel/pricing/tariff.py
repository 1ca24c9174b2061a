"""Bill of a sandbox from requested size, CPU time, lifetime and share of a node."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from costmodel.errors import PriceError
from costmodel.pricing.instance_sizes import Size, sold_size
from costmodel.recording.trial import CellIdentity
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


class UsdRates(NamedTuple):
    """Rates in US dollars; a "unit" is the larger of vCPUs and GiB / ``gib_per_unit``."""

    usd_per_hour: float = 0.0
    usd_per_vcpu_hour: float = 0.0
    usd_per_gib_hour: float = 0.0
    usd_per_unit_hour: float = 0.0
    usd_per_address_hour: float = 0.0  # public address of a sandbox
    usd_per_disk_hour: float = 0.0  # whole disk of a sandbox
    usd_per_disk_gib_hour: float = 0.0
    usd_per_node_hour: float = 0.0
    usd_per_create: float = 0.0
    usd_per_egress_gib: float = 0.0  # in no bill: outgoing traffic is not measured


class Node(NamedTuple):
    """Capacity of a paid node, in sandboxes or in vCPUs and memory."""

    sandboxes: int | None = None
    vcpus: float = math.inf
    gib: float = math.inf

    def fit(self, size: Size) -> int:
        """Return the number of sandboxes of this size on one node; 0: none."""
        by_size = min(self.vcpus * 1000 / size.cpu_milli, self.gib * 1024 / size.memory_mib)
        return self.sandboxes if self.sandboxes is not None else int(by_size)


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

    def billed_of(self, clocks_ns: Sequence[int], exists: float, cpu: float) -> int:
        """Return the bill for several clocks; ``exists`` and ``cpu`` are the shares of existence and CPU time."""
        if self.cpu:
            return sum(self.billed(round(ns * exists), round(ns * cpu)) for ns in clocks_ns)
        exist_ns = [round(ns * exists) for ns in clocks_ns]
        all_ns = sum(billed_ns(ns, self.minimum_ns, self.increment_ns) for ns in exist_ns)
        return self.exists * all_ns + self.create * sum(ns > 0 for ns in exist_ns)

    @staticmethod
    def usd(billed: float) -> float:
        return billed / PARTS / NS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPrice:
    """Price of a substrate's sandboxes."""

    substrate: str
    variant: str | None  # None: any
    rates: UsdRates
    cheaper: UsdRates  # lowest rates of the sources; equal to ``rates`` without a dispute
    cpu: CpuBasis = PROVISIONED
    idle: IdleBilling = BILLED
    free_vcpus: float = 0.0  # per sandbox
    free_gib: float = 0.0
    disk_gib: float = 0.0  # per sandbox, for disk billed by size
    free_disk_gib: float = 0.0
    gib_per_unit: float = 1.0
    node: Node | None = None  # None: nodes are not billed
    sizes: str = ""  # a name of ``SIZES``; "": any size is sold
    minimum_ns: int
    increment_ns: int
    source: str
    sheet: str  # title of the sheet and date of the price
    stale: bool

    @property
    def disputed(self) -> bool:
        """Whether the sources disagree."""
        return self.rates != self.cheaper

    def size(self, identity: CellIdentity) -> Size:
        """Return the billed size. Raises ``PriceError`` if no size is large enough, or none fits a node."""
        request = Size(identity.cpu_milli, identity.memory_mib)
        request_text = f"{request.cpu_milli / 1000:g} vCPU and {request.memory_mib} MiB"
        size = sold_size(self.sizes, *request) if self.sizes else request
        if size is None:
            raise PriceError(f"{self.sizes} sells nothing with {request_text}; ask for less")
        if self.node is not None and self.node.fit(size) < 1:
            raise PriceError(
                f"{self.sheet}: no sandbox with {request_text} fits on a node; ask for less, or price larger nodes"
            )
        return size

    def meter(self, identity: CellIdentity, *, lowest: bool = False) -> Meter:
        """Return the meter without nodes; ``lowest``: at the lowest rates. Raises as ``size``."""
        rates, size = self.cheaper if lowest else self.rates, self.size(identity)
        vcpus, gib = size.cpu_milli / 1000, size.memory_mib / 1024
        cpu_usd_hour = 0.0 if self.cpu == PROVISIONED else rates.usd_per_vcpu_hour
        asked_usd_hour = 0.0 if self.cpu == ACTIVE else max(0.0, vcpus - self.free_vcpus) * rates.usd_per_vcpu_hour
        usd_hour = (
            rates.usd_per_hour
            + asked_usd_hour
            + max(0.0, gib - self.free_gib) * rates.usd_per_gib_hour
            + max(vcpus, gib / self.gib_per_unit) * rates.usd_per_unit_hour
            + rates.usd_per_address_hour
            + rates.usd_per_disk_hour
            + max(0.0, self.disk_gib - self.free_disk_gib) * rates.usd_per_disk_gib_hour
        )
        return Meter(
            exists=round(usd_hour * PARTS),
            cpu=round(cpu_usd_hour * PARTS),
            create=round(rates.usd_per_create * PARTS) * NS_PER_HOUR,
            included_milli=size.cpu_milli if self.cpu == GREATER else round(1000 * self.free_vcpus),
            minimum_ns=self.minimum_ns,
            increment_ns=self.increment_ns,
        )

    def usd_hour(self, identity: CellIdentity) -> float:
        """Return the hourly rate of an idle sandbox, with a share of a node. Raises as ``size``."""
        return self.meter(identity).exists / PARTS + self._node_share(identity)

    def idle_usd_hour(self, identity: CellIdentity) -> float:
        """Return the hourly rate of a ready sandbox without the node. Raises as ``size``."""
        return 0.0 if self.idle == FREE else self.meter(identity).exists / PARTS

    def suspended_usd_hour(self) -> float:
        """Return the hourly rate of a suspended sandbox: its disk."""
        disk_gib = max(0.0, self.disk_gib - self.free_disk_gib)
        return self.rates.usd_per_disk_hour + disk_gib * self.rates.usd_per_disk_gib_hour

    def usd(self, identity: CellIdentity, sandbox_ns: int, cpu_ns: int | None = None) -> Fraction:
        """Return the cost of a sandbox with a lifetime of ``sandbox_ns``.

        Unknown CPU time (None) counts as all vCPUs busy. A node costs the sandbox's share of a full node.
        """
        meter = self.meter(identity)
        used_ns = sandbox_ns * identity.cpu_milli // 1000 if cpu_ns is None else cpu_ns
        without_node = Fraction(meter.billed(sandbox_ns, used_ns), PARTS * NS_PER_HOUR)
        return without_node + Fraction(self._node_share(identity)) * max(0, sandbox_ns) / NS_PER_HOUR

    def _node_share(self, identity: CellIdentity) -> float:
        return 0.0 if self.node is None else self.rates.usd_per_node_hour / self.node.fit(self.size(identity))


def titled(title: str, date: datetime.date) -> str:
    """Return the name of a sheet with the date."""
    return f"{title} ({date})"
