"""What one provider charges for a sandbox: by what it was given, by what it used, by the node that it stands on."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from costmodel.errors import PriceError
from costmodel.pricing.instance_sizes import Size, sold_size
from costmodel.recording.reader import CellIdentity
from costmodel.units import NS_PER_HOUR

PARTS: Final = 10**12
"""UsdRates are counted in whole parts of a dollar, so that sums over millions of attempts are exact."""
PROVISIONED: Final = "provisioned"
ACTIVE: Final = "active"
GREATER: Final = "greater"
CpuBasis = Literal["provisioned", "active", "greater"]
"""What a vCPU-hour is counted by: the vCPUs asked for, CPU time used, or whichever is more."""
BILLED: Final = "billed"
FREE: Final = "free"
IdleBilling = Literal["billed", "free"]
"""Whether a sandbox that nobody talks to is billed."""


def billed_ns(ns: int, minimum_ns: int, increment_ns: int) -> int:
    """What is charged for ``ns`` of use: whole increments, and at least the minimum; nothing for no use."""
    return 0 if ns <= 0 else max(minimum_ns, -(-ns // increment_ns) * increment_ns)


class UsdRates(NamedTuple):
    """US dollars; "unit" is the larger of vCPUs and GiB over ``gib_per_unit``."""

    usd_per_hour: float = 0.0
    usd_per_vcpu_hour: float = 0.0
    usd_per_gib_hour: float = 0.0
    usd_per_unit_hour: float = 0.0
    usd_per_address_hour: float = 0.0  # the public address that each sandbox has
    usd_per_disk_hour: float = 0.0  # its disk, all of it
    usd_per_disk_gib_hour: float = 0.0
    usd_per_node_hour: float = 0.0
    usd_per_create: float = 0.0
    usd_per_egress_gib: float = 0.0  # in no bill here: nothing tells how much leaves a sandbox


class Node(NamedTuple):
    """What a sandbox stands on, where nodes are paid for: how many fit, by number or by what they ask for."""

    sandboxes: int | None = None
    vcpus: float = math.inf
    gib: float = math.inf

    def fit(self, asked: Size) -> int:
        """How many sandboxes of this size one node holds; 0: none."""
        by_size = min(self.vcpus * 1000 / asked.cpu_milli, self.gib * 1024 / asked.memory_mib)
        return self.sandboxes if self.sandboxes is not None else int(by_size)


class Meter(NamedTuple):
    """The bill of one sandbox of a certain size, in whole parts of a dollar times ns per hour."""

    exists: int  # per hour that it exists, in parts
    cpu: int  # per hour of CPU time, in parts
    create: int
    included_milli: int  # vCPUs whose CPU time is in ``exists``
    minimum_ns: int
    increment_ns: int

    def billed(self, exists_ns: int, cpu_ns: int) -> int:
        """Of a sandbox that existed so long and used so much CPU time."""
        clock_ns = billed_ns(exists_ns, self.minimum_ns, self.increment_ns)
        beyond_ns = max(0, cpu_ns - self.included_milli * clock_ns // 1000)
        return self.exists * clock_ns + self.cpu * beyond_ns + self.create * (exists_ns > 0)

    def billed_of(self, clocks_ns: Sequence[int], exists: float, cpu: float) -> int:
        """The sum for sandboxes of so many ns each, of which these shares are what exists and what CPU time is used."""
        if self.cpu:
            return sum(self.billed(round(ns * exists), round(ns * cpu)) for ns in clocks_ns)
        exist_ns = [round(ns * exists) for ns in clocks_ns]
        all_ns = sum(billed_ns(ns, self.minimum_ns, self.increment_ns) for ns in exist_ns)
        return self.exists * all_ns + self.create * sum(ns > 0 for ns in exist_ns)

    @staticmethod
    def usd(billed: float) -> float:
        """In dollars."""
        return billed / PARTS / NS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPrice:
    """What one substrate charges for a sandbox."""

    substrate: str
    variant: str | None  # None: any
    rates: UsdRates
    cheaper: UsdRates  # the same by whoever says least; equal where the sources agree
    cpu: CpuBasis = PROVISIONED
    idle: IdleBilling = BILLED
    free_vcpus: float = 0.0  # of each sandbox
    free_gib: float = 0.0
    disk_gib: float = 0.0  # that each sandbox has, where disk is billed by size
    free_disk_gib: float = 0.0
    gib_per_unit: float = 1.0
    node: Node | None = None  # nodes are paid for, whatever stands on them
    sizes: str = ""  # which of ``costmodel.pricing.instance_sizes`` are sold; "": whatever is asked for
    minimum_ns: int
    increment_ns: int
    source: str
    sheet: str  # its title, and the date of these values
    stale: bool

    @property
    def disputed(self) -> bool:
        """Whether its sources disagree."""
        return self.rates != self.cheaper

    def size(self, identity: CellIdentity) -> Size:
        """What is billed for the cell's limits. Raises ``PriceError`` where no such size is sold, or fits a node."""
        asked = Size(identity.cpu_milli, identity.memory_mib)
        what = f"{asked.cpu_milli / 1000:g} vCPU and {asked.memory_mib} MiB"
        size = sold_size(self.sizes, *asked) if self.sizes else asked
        if size is None:
            raise PriceError(f"{self.sizes} sells nothing with {what}; ask for less")
        if self.node is not None and self.node.fit(size) < 1:
            raise PriceError(
                f"{self.sheet}: no sandbox with {what} fits on a node; ask for less, or price larger nodes"
            )
        return size

    def meter(self, identity: CellIdentity, *, least: bool = False) -> Meter:
        """The bill for the cell's limits, without nodes; ``least``: by whoever says least. Raises as ``size``."""
        rates, size = self.cheaper if least else self.rates, self.size(identity)
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
        """The rate of a sandbox with the cell's limits that exists and idles, its share of a node included.

        Raises ``PriceError`` as ``size`` does.
        """
        return self.meter(identity).exists / PARTS + self._node_share(identity)

    def idle_usd_hour(self, identity: CellIdentity) -> float:
        """The rate of one that stands ready, nodes apart, which are paid for as a whole. Raises as ``size``."""
        return 0.0 if self.idle == FREE else self.meter(identity).exists / PARTS

    def usd(self, identity: CellIdentity, sandbox_ns: int, cpu_ns: int | None = None) -> Fraction:
        """What one sandbox costs that existed for ``sandbox_ns``.

        CPU time that is not known (None) counts as all vCPUs busy all the time, where it is paid for. Of a node it is
        the share that the sandbox takes of a full one.
        """
        meter = self.meter(identity)
        used_ns = sandbox_ns * identity.cpu_milli // 1000 if cpu_ns is None else cpu_ns
        own = Fraction(meter.billed(sandbox_ns, used_ns), PARTS * NS_PER_HOUR)
        return own + Fraction(self._node_share(identity)) * max(0, sandbox_ns) / NS_PER_HOUR

    def _node_share(self, identity: CellIdentity) -> float:
        return 0.0 if self.node is None else self.rates.usd_per_node_hour / self.node.fit(self.size(identity))


def titled(title: str, date: datetime.date) -> str:
    """A sheet's name wherever its numbers are shown: a price is worth nothing without its date."""
    return f"{title} ({date})"
