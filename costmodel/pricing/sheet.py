"""Dated price sheets with the source of each value. An unknown price is an error, never a guess."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from costmodel.errors import NoPrice, PriceError
from costmodel.pricing.instance_sizes import SIZES
from costmodel.pricing.tariff import BILLED, PROVISIONED, CpuBasis, IdleBilling, Node, SandboxPrice, UsdRates, titled
from costmodel.recording.trial import CellIdentity
from costmodel.toml import Count, Document, MalformedDocument, Text
from costmodel.units import MAX_INT

SHIPPED_PRICES: Final = Path(__file__).parent / "data"
STALE_AFTER: Final = datetime.timedelta(days=365)


def priced_cell(substrate: str, variant: str, cpus: float, memory_mib: int) -> CellIdentity:
    """Return a cell with these limits; a price depends on nothing else."""
    unpriced = CellIdentity._make("" for _ in CellIdentity._fields)
    return unpriced._replace(substrate=substrate, variant=variant, cpu_milli=round(cpus * 1000), memory_mib=memory_mib)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """A price sheet, or several: the first with a price counts."""

    title: str
    date: datetime.date
    sandboxes: tuple[SandboxPrice, ...]
    worker_usd_hour: float | None
    stale: bool  # older than a year when loaded

    def sandbox(self, identity: CellIdentity) -> SandboxPrice:
        """Return the price of a cell's sandboxes: for the variant, else for any variant.

        The variant of a harness is a provider, whose prices apply.

        Raises:
            NoPrice: the sheet has no price; the error contains the stanza to add.
            PriceError: the request exceeds all sizes on sale.
        """
        substrate, variant = identity.substrate, identity.variant
        for wanted in ((substrate, variant), (substrate, None), (variant, None)):
            for price in self.sandboxes:
                if (price.substrate, price.variant) == wanted:
                    price.size(identity)  # raises before the first sandbox is billed
                    return price
        name = f'substrate = "{identity.substrate}"'
        if identity.variant:
            name += f'\nvariant = "{identity.variant}"  # leave this out to price every variant alike'
        raise NoPrice(
            f"{self.title} has no price for {identity.label}",
            f"[[sandbox]]\n{name}\n"
            "usd_per_vcpu_hour = ?  # of each vCPU asked for; 0 if it is paid for otherwise\n"
            "usd_per_gib_hour = ?\n"
            "usd_per_address_hour = ?  # of a public address; usd_per_disk_hour of its disk; 0 if there is none\n"
            "minimum_s = ?  # least time that is billed\n"
            'increment_s = ?  # time is rounded up to this\nsource = "where these come from"\n',
        )

    def combined_with(self, fallback: Prices) -> Prices:
        """Combine two sheets; this sheet's prices take precedence."""
        return Prices(
            title=f"{self.title} and {fallback.title}",
            date=min(self.date, fallback.date),
            sandboxes=self.sandboxes + fallback.sandboxes,
            worker_usd_hour=fallback.worker_usd_hour if self.worker_usd_hour is None else self.worker_usd_hour,
            stale=self.stale or fallback.stale,
        )


Usd = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
# Not tuple[Usd, Usd]: in a union with a bounded number, msgspec 0.22 crashes on that at the next garbage collection.
UsdSpan = Usd | Annotated[tuple[Usd, ...], msgspec.Meta(min_length=2, max_length=2)]
"""One value, or the lowest and highest of several sources."""
Amount = Annotated[float, msgspec.Meta(ge=0, le=MAX_INT)]
_NODE: Final = ("sandboxes_per_node", "node_vcpus", "node_gib")
_AMOUNTS: Final = ("disk_gib", "free_vcpus", "free_gib", "free_disk_gib", "gib_per_unit")
_NEEDS: Final = {
    "usd_per_unit_hour": ("gib_per_unit",),
    "usd_per_disk_gib_hour": ("disk_gib",),
    "usd_per_node_hour": ("sandboxes_per_node", "node_vcpus and node_gib"),
    "free_vcpus": ("usd_per_vcpu_hour",),
    "free_gib": ("usd_per_gib_hour",),
    "free_disk_gib": ("usd_per_disk_gib_hour",),
    **{key: ("usd_per_node_hour",) for key in _NODE},
}
"""Key → keys; at least one is needed."""


class PricedSandbox(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``[[sandbox]]`` of a sheet, as in the file."""

    substrate: Text  # substrate, or provider of `--compose`
    source: Text | Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]  # a list where sources disagree
    minimum_s: Annotated[float, msgspec.Meta(ge=0, le=MAX_INT / 1e9)]  # least time that is billed, in seconds
    increment_s: Annotated[float, msgspec.Meta(ge=1e-9, le=MAX_INT / 1e9)]  # billed time is rounded up to a multiple
    variant: str | None = None  # only for this runtime or instance type
    date: datetime.date | None = None  # date of the price; default: the sheet's
    sizes: str = ""  # sold sizes: `fargate` or `vercel`; a request is billed as the next larger size
    cpu: CpuBasis = PROVISIONED  # billed vCPU time: `provisioned`, `active` (CPU time used) or `greater` of the two
    idle: IdleBilling = BILLED  # `free` where time without a request is not billed
    usd_per_hour: UsdSpan | None = None  # sandbox of any size
    usd_per_vcpu_hour: UsdSpan | None = None  # vCPU
    usd_per_gib_hour: UsdSpan | None = None  # GiB of requested memory
    usd_per_unit_hour: UsdSpan | None = None  # unit: the larger of vCPUs and GiB / `gib_per_unit`
    usd_per_address_hour: UsdSpan | None = None  # public address of a sandbox
    usd_per_disk_hour: UsdSpan | None = None  # whole disk of a sandbox
    usd_per_disk_gib_hour: UsdSpan | None = None  # GiB of disk; needs `disk_gib`
    usd_per_node_hour: UsdSpan | None = None  # node; needs `sandboxes_per_node`, or `node_vcpus` and `node_gib`
    usd_per_create: UsdSpan | None = None  # creation of a sandbox
    usd_per_egress_gib: UsdSpan | None = None  # GiB of egress; not in the bill, and rows carry a warning
    disk_gib: Amount | None = None  # disk of a sandbox
    free_vcpus: Amount | None = None  # free vCPUs of each sandbox
    free_gib: Amount | None = None  # free memory of each sandbox
    free_disk_gib: Amount | None = None  # free disk of each sandbox
    gib_per_unit: Annotated[float, msgspec.Meta(gt=0, le=MAX_INT)] | None = None  # GiB of a unit
    sandboxes_per_node: Count | None = None  # sandboxes on a node
    node_vcpus: Amount | None = None  # vCPUs of a node
    node_gib: Amount | None = None  # memory of a node

    def __post_init__(self) -> None:
        """Check for a price, and for missing keys."""
        if not self.rates:
            raise ValueError(f"no price; give at least one of {', '.join(UsdRates._fields)}")
        for key, needed in _NEEDS.items():
            if self.has(key) and not any(all(map(self.has, need.split(" and "))) for need in needed):
                raise ValueError(f"{key} needs {' or '.join(needed)}; add {needed[0]} = ?")
        if self.cpu != PROVISIONED and self.usd_per_vcpu_hour is None:
            raise ValueError(f"cpu = {self.cpu!r} needs usd_per_vcpu_hour; add usd_per_vcpu_hour = ?")
        if self.has("sandboxes_per_node") and (spare := [key for key in _NODE[1:] if self.has(key)]):
            raise ValueError(f"sandboxes_per_node says how many fit; leave {spare[0]} out")
        if self.sizes and self.sizes not in SIZES:
            raise ValueError(f"unknown sizes {self.sizes!r}; known: {', '.join(SIZES)}")
        for rate, (low, high) in self.rates.items():
            if low > high:
                raise ValueError(f"{rate} must be [least, most], not [{low:g}, {high:g}]")
            if low < high and len(self.sources) < 2:
                raise ValueError(f"{rate} is a range, which needs the sources that disagree; source = [..]")

    def has(self, key: str) -> bool:
        return getattr(self, key) is not None

    @property
    def rates(self) -> dict[str, tuple[float, float]]:
        """Rate → lowest and highest value of the sources."""
        spans = {rate: getattr(self, rate) for rate in UsdRates._fields if self.has(rate)}
        return {rate: (usd[0], usd[1]) if isinstance(usd, tuple) else (usd, usd) for rate, usd in spans.items()}

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,) if isinstance(self.source, str) else self.source


class PricedWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[worker]`` of a sheet."""

    usd_per_hour: Usd


class PriceSheet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price sheet, as in the file."""

    date: Annotated[
        datetime.date,
        msgspec.Meta(description="prices change, so a sheet needs its date; add date = YYYY-MM-DD"),
    ]
    title: str = ""
    currency: Literal["USD"] = "USD"
    sandbox: tuple[PricedSandbox, ...] = ()
    worker: PricedWorker | None = None


def load_prices(path: str | Path, today: datetime.date | None = None) -> Prices:
    """Read a price sheet: a TOML file, or the bare name of a shipped sheet such as ``aws-fargate``.

    Raises:
        PriceError: the file is unreadable, or a value is missing, unknown, negative, or lacks its source.
    """
    file = Path(path)
    try:
        if not file.exists() and (SHIPPED_PRICES / f"{path}.toml").is_file():
            file = SHIPPED_PRICES / f"{path}.toml"
        sheet = Document(file).convert(PriceSheet)
    except OSError as error:
        shipped = ", ".join(sorted(sheet.stem for sheet in SHIPPED_PRICES.glob("*.toml")))
        raise PriceError(f"cannot read {file}: {error.strerror}; shipped sheets: {shipped}") from error
    except MalformedDocument as error:
        raise PriceError(str(error)) from error
    title, now = sheet.title or file.name, today or datetime.datetime.now(datetime.UTC).date()
    return Prices(
        title=title,
        date=sheet.date,
        sandboxes=tuple(_sandbox(stanza, title, stanza.date or sheet.date, now) for stanza in sheet.sandbox),
        worker_usd_hour=None if sheet.worker is None else sheet.worker.usd_per_hour,
        stale=now - sheet.date > STALE_AFTER,
    )


def _sandbox(stanza: PricedSandbox, title: str, date: datetime.date, today: datetime.date) -> SandboxPrice:
    node = None
    if stanza.usd_per_node_hour is not None:
        node = Node(
            stanza.sandboxes_per_node,
            math.inf if stanza.node_vcpus is None else stanza.node_vcpus,
            math.inf if stanza.node_gib is None else stanza.node_gib,
        )
    return SandboxPrice(
        substrate=stanza.substrate,
        variant=stanza.variant,
        rates=UsdRates(**{rate: high for rate, (_, high) in stanza.rates.items()}),
        cheaper=UsdRates(**{rate: low for rate, (low, _) in stanza.rates.items()}),
        cpu=stanza.cpu,
        idle=stanza.idle,
        node=node,
        sizes=stanza.sizes,
        minimum_ns=round(stanza.minimum_s * 1e9),
        increment_ns=round(stanza.increment_s * 1e9),
        source="; ".join(stanza.sources),
        sheet=titled(title, date),
        stale=today - date > STALE_AFTER,
        **{key: getattr(stanza, key) for key in _AMOUNTS if stanza.has(key)},
    )
