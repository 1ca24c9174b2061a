"""Dated price sheets with the source of each value. An unknown price is an error, never a guess."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from costmodel.errors import NoPrice, PriceError
from costmodel.recording.trial import CellIdentity
from costmodel.toml import Text, load_document
from costmodel.units import MAX_INT, NS_PER_HOUR

SHIPPED_PRICES: Final = Path(__file__).parent / "data"
PARTS: Final = 10**12
"""Parts of a dollar: whole numbers keep sums over millions of attempts exact."""
PROVISIONED: Final = "provisioned"
ACTIVE: Final = "active"
GREATER: Final = "greater"
FREE: Final = "free"
CpuBasis = Literal["provisioned", "active", "greater"]
"""Measure of vCPU-hours: requested vCPUs, used CPU time, or the larger."""


class Size(NamedTuple):
    """Size of a sandbox."""

    cpu_milli: int
    memory_mib: int


SIZES: Final[Mapping[str, Mapping[int, tuple[int, ...]]]] = {
    "fargate": {  # "Task CPU and memory", Amazon ECS Developer Guide
        250: (512, 1024, 2048),
        500: tuple(range(1024, 4096 + 1, 1024)),
        1000: tuple(range(2048, 8192 + 1, 1024)),
        2000: tuple(range(4096, 16384 + 1, 1024)),
        4000: tuple(range(8192, 30720 + 1, 1024)),
        8000: tuple(range(16384, 61440 + 1, 4096)),
        16000: tuple(range(32768, 122880 + 1, 8192)),
    },
    # "at most 8 vCPUs with 2 GB of memory per vCPU", vercel.com/docs/vercel-sandbox/pricing
    "vercel": {1000: (2048,), 2000: (4096,), 4000: (8192,), 8000: (16384,)},
}
"""Sizes by the name in a price sheet's ``sizes``: thousandths of a vCPU → MiB."""


def sold_size(sizes: str, cpu_milli: int, memory_mib: int) -> Size | None:
    """Return the smallest sufficient size for a request, fewest CPUs first; None: the request is too large.

    ``sizes`` is one of ``SIZES``.
    """
    sold = (Size(milli, mib) for milli, memories in SIZES[sizes].items() for mib in memories)
    return next((size for size in sold if size.cpu_milli >= cpu_milli and size.memory_mib >= memory_mib), None)


def priced_cell(substrate: str, variant: str, cpus: float, memory_mib: int) -> CellIdentity:
    """Return a cell with these limits; a price depends on nothing else."""
    return CellIdentity(substrate, variant, cpu_milli=round(cpus * 1000), memory_mib=memory_mib)


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


Usd = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
# Not tuple[Usd, Usd]: in a union with a bounded number, msgspec 0.22 crashes on that at the next garbage collection.
UsdSpan = Usd | Annotated[tuple[Usd, ...], msgspec.Meta(min_length=2, max_length=2)]
"""One value, or the lowest and highest of several sources."""
Amount = Annotated[float, msgspec.Meta(ge=0, le=MAX_INT)]
_NEEDS: Final = {"usd_per_unit_hour": "gib_per_unit", "usd_per_disk_gib_hour": "disk_gib"}
"""Key → needed key."""


class SandboxPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Price of a substrate's sandboxes: a ``[[sandbox]]`` of a sheet."""

    substrate: Text  # substrate, or provider of `--compose`
    source: Text | Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]  # a list where sources disagree
    minimum_s: Annotated[float, msgspec.Meta(ge=0, le=MAX_INT / 1e9)]  # least time that is billed, in seconds
    increment_s: Annotated[float, msgspec.Meta(ge=1e-9, le=MAX_INT / 1e9)]  # billed time is rounded up to a multiple
    variant: str | None = None  # only for this runtime or instance type
    date: datetime.date | None = None  # date of the price; default: the sheet's
    title: str = ""  # name of the price; default: the sheet's
    sizes: str = ""  # sold sizes: `fargate` or `vercel`; a request is billed as the next larger size
    cpu: CpuBasis = PROVISIONED  # billed vCPU time: `provisioned`, `active` (CPU time used) or `greater` of the two
    idle: Literal["billed", "free"] = "billed"  # `free` where time without a request is not billed
    usd_per_hour: UsdSpan | None = None  # sandbox of any size
    usd_per_vcpu_hour: UsdSpan | None = None  # vCPU
    usd_per_gib_hour: UsdSpan | None = None  # GiB of requested memory
    usd_per_unit_hour: UsdSpan | None = None  # unit: the larger of vCPUs and GiB / `gib_per_unit`
    usd_per_address_hour: UsdSpan | None = None  # public address of a sandbox
    usd_per_disk_hour: UsdSpan | None = None  # whole disk of a sandbox
    usd_per_disk_gib_hour: UsdSpan | None = None  # GiB of disk; needs `disk_gib`
    usd_per_create: UsdSpan | None = None  # creation of a sandbox
    usd_per_egress_gib: UsdSpan | None = None  # GiB of egress; not in the bill, and rows carry a warning
    disk_gib: Amount | None = None  # disk of a sandbox
    gib_per_unit: Annotated[float, msgspec.Meta(gt=0, le=MAX_INT)] | None = None  # GiB of a unit

    def __post_init__(self) -> None:
        """Check for a price, and for missing keys."""
        if not self.rates:
            raise ValueError(f"no price; give at least one of {', '.join(USD_RATES)}")
        for key, needed in _NEEDS.items():
            if key in self.rates and getattr(self, needed) is None:
                raise ValueError(f"{key} needs {needed}; add {needed} = ?")
        if self.cpu != PROVISIONED and self.usd_per_vcpu_hour is None:
            raise ValueError(f"cpu = {self.cpu!r} needs usd_per_vcpu_hour; add usd_per_vcpu_hour = ?")
        if self.sizes and self.sizes not in SIZES:
            raise ValueError(f"unknown sizes {self.sizes!r}; known: {', '.join(SIZES)}")
        for rate, (low, high) in self.rates.items():
            if low > high:
                raise ValueError(f"{rate} must be [least, most], not [{low:g}, {high:g}]")
            if low < high and len(self.sources) < 2:
                raise ValueError(f"{rate} is a range, which needs the sources that disagree; source = [..]")

    @property
    def rates(self) -> dict[str, tuple[float, float]]:
        """Rate → lowest and highest value of the sources."""
        spans = {rate: usd for rate in USD_RATES if (usd := getattr(self, rate)) is not None}
        return {rate: (usd[0], usd[1]) if isinstance(usd, tuple) else (usd, usd) for rate, usd in spans.items()}

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,) if isinstance(self.source, str) else self.source

    @property
    def sheet(self) -> str:
        """The title, with the date of the price."""
        return f"{self.title} ({self.date})"

    @property
    def stale(self) -> bool:
        """Whether the price is older than a year."""
        today = datetime.datetime.now(datetime.UTC).date()
        return self.date is not None and today - self.date > datetime.timedelta(days=365)

    @property
    def cited(self) -> str:
        return "; ".join(self.sources)

    @property
    def minimum_ns(self) -> int:
        return round(self.minimum_s * 1e9)

    @property
    def increment_ns(self) -> int:
        return round(self.increment_s * 1e9)

    @property
    def disputed(self) -> bool:
        """Whether the sources disagree."""
        return any(low < high for low, high in self.rates.values())

    def rate(self, name: str) -> float:
        """Return the highest value of a rate; 0: not charged."""
        return self.rates.get(name, (0.0, 0.0))[1]

    def size(self, identity: CellIdentity) -> Size:
        """Return the billed size. Raises ``PriceError`` if no size is large enough."""
        request = Size(identity.cpu_milli, identity.memory_mib)
        size = sold_size(self.sizes, *request) if self.sizes else request
        if size is None:
            wanted = f"{request.cpu_milli / 1000:g} vCPU and {request.memory_mib} MiB"
            raise PriceError(f"{self.sizes} sells nothing with {wanted}; ask for less")
        return size

    def meter(self, identity: CellIdentity, *, lowest: bool = False) -> Meter:
        """Return the meter; ``lowest``: at the lowest rates. Raises as ``size``."""
        usd = {rate: low if lowest else high for rate, (low, high) in self.rates.items()}
        size = self.size(identity)
        vcpus, gib = size.cpu_milli / 1000, size.memory_mib / 1024
        amounts = {
            "usd_per_hour": 1.0,
            "usd_per_vcpu_hour": 0.0 if self.cpu == ACTIVE else vcpus,
            "usd_per_gib_hour": gib,
            "usd_per_unit_hour": max(vcpus, gib / self.gib_per_unit) if self.gib_per_unit else 0.0,
            "usd_per_address_hour": 1.0,
            "usd_per_disk_hour": 1.0,
            "usd_per_disk_gib_hour": self.disk_gib or 0.0,
        }
        cpu_usd_hour = 0.0 if self.cpu == PROVISIONED else usd.get("usd_per_vcpu_hour", 0.0)
        return Meter(
            exists=round(sum(amount * usd.get(rate, 0.0) for rate, amount in amounts.items()) * PARTS),
            cpu=round(cpu_usd_hour * PARTS),
            create=round(usd.get("usd_per_create", 0.0) * PARTS) * NS_PER_HOUR,
            included_milli=size.cpu_milli if self.cpu == GREATER else 0,
            minimum_ns=self.minimum_ns,
            increment_ns=self.increment_ns,
        )

    def usd_hour(self, identity: CellIdentity) -> float:
        """Return the hourly rate of an existing sandbox without CPU use. Raises as ``size``."""
        return self.meter(identity).exists / PARTS

    def idle_usd_hour(self, identity: CellIdentity) -> float:
        """Return the same rate, 0 if idle time is free. Raises as ``size``."""
        return 0.0 if self.idle == FREE else self.usd_hour(identity)

    def suspended_usd_hour(self) -> float:
        """Return the hourly rate of a suspended sandbox: its disk."""
        return self.rate("usd_per_disk_hour") + (self.disk_gib or 0.0) * self.rate("usd_per_disk_gib_hour")

    def usd(self, identity: CellIdentity, sandbox_ns: int, cpu_ns: int | None = None) -> Fraction:
        """Return the cost of a sandbox with a lifetime of ``sandbox_ns``.

        Unknown CPU time (None) counts as all vCPUs busy.
        """
        used_ns = sandbox_ns * self.size(identity).cpu_milli // 1000 if cpu_ns is None else cpu_ns
        return Fraction(self.meter(identity).billed(sandbox_ns, used_ns), PARTS * NS_PER_HOUR)


USD_RATES: Final = tuple(key for key in SandboxPrice.__struct_fields__ if key.startswith("usd_per_"))
BILLED_RATES: Final = tuple(rate for rate in USD_RATES if rate != "usd_per_egress_gib")
"""Rates that are part of a bill."""


class PricedWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[worker]`` of a sheet."""

    usd_per_hour: Usd


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price sheet, or several: the first with a price counts."""

    date: Annotated[
        datetime.date,
        msgspec.Meta(description="prices change, so a sheet needs its date; add date = YYYY-MM-DD"),
    ]
    title: str = ""
    currency: Literal["USD"] = "USD"
    sandboxes: tuple[SandboxPrice, ...] = msgspec.field(name="sandbox", default=())
    worker: PricedWorker | None = None

    @property
    def worker_usd_hour(self) -> float | None:
        return None if self.worker is None else self.worker.usd_per_hour

    def sandbox(self, identity: CellIdentity) -> SandboxPrice:
        """Return the price of a cell's sandboxes: for the variant, else for any variant.

        The variant of a harness is a provider, whose prices apply.

        Raises:
            NoPrice: the sheet has no price.
            PriceError: the request exceeds all sizes on sale.
        """
        substrate, variant = identity.substrate, identity.variant
        for wanted in ((substrate, variant), (substrate, None), (variant, None)):
            for price in self.sandboxes:
                if (price.substrate, price.variant) == wanted:
                    price.size(identity)  # raises before the first sandbox is billed
                    return price
        keys = f'substrate = "{substrate}"' + (f', variant = "{variant}"' if variant else "")
        raise NoPrice(f"{self.title} has no price for {identity.label}; add a [[sandbox]] for it, with {keys}")

    def combined_with(self, fallback: Prices) -> Prices:
        """Combine two sheets; this sheet's prices take precedence."""
        return msgspec.structs.replace(
            self,
            title=f"{self.title} and {fallback.title}",
            date=min(self.date, fallback.date),
            sandboxes=self.sandboxes + fallback.sandboxes,
            worker=self.worker or fallback.worker,
        )


def load_prices(path: str | Path) -> Prices:
    """Read a price sheet: a TOML file, or the bare name of a shipped sheet such as ``aws-fargate``.

    Raises:
        PriceError: the file is unreadable, or a value is missing, unknown, negative, or lacks its source.
    """
    file, sheet = load_document(path, Prices, PriceError, SHIPPED_PRICES)
    title = sheet.title or file.name
    sandboxes = (
        msgspec.structs.replace(price, title=price.title or title, date=price.date or sheet.date)
        for price in sheet.sandboxes
    )
    return msgspec.structs.replace(sheet, title=title, sandboxes=tuple(sandboxes))
