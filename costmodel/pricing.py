"""Dated price sheets, and billing that is not linear in time. A price that is not known is an error, never a guess."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from costmodel.documents import Document, MalformedDocument
from costmodel.errors import NoPrice, PriceError
from costmodel.events import MAX_INT
from costmodel.recording import CellIdentity
from costmodel.sizes import SIZES, Size, sold

SHIPPED: Final = Path(__file__).parent / "prices"
STALE_AFTER: Final = datetime.timedelta(days=365)
NS_PER_HOUR: Final = 3_600_000_000_000
_RATES: Final = (
    "usd_per_hour",
    "usd_per_vcpu_hour",
    "usd_per_gib_hour",
    "usd_per_address_hour",
    "usd_per_disk_hour",
)


def billed_ns(ns: int, minimum_ns: int, increment_ns: int) -> int:
    """What is charged for ``ns`` of use: whole increments, and at least the minimum; nothing for no use."""
    return 0 if ns <= 0 else max(minimum_ns, -(-ns // increment_ns) * increment_ns)


def priced(substrate: str, variant: str, cpus: float, memory_mib: int) -> CellIdentity:
    """A cell of these limits: of its identity a price depends on four fields only."""
    unpriced = CellIdentity._make("" for _ in CellIdentity._fields)
    return unpriced._replace(substrate=substrate, variant=variant, cpu_milli=round(cpus * 1000), memory_mib=memory_mib)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPrice:
    """What one substrate charges for a sandbox."""

    substrate: str
    variant: str | None  # None: any
    usd_per_hour: float
    usd_per_vcpu_hour: float
    usd_per_gib_hour: float
    usd_per_address_hour: float  # the public address that each sandbox has
    usd_per_disk_hour: float  # its disk, all of it
    sizes: str  # which of ``costmodel.sizes`` are sold; "": whatever is asked for
    minimum_ns: int
    increment_ns: int
    source: str

    def usd_hour(self, identity: CellIdentity) -> float:
        """The rate of a sandbox with the cell's limits, of the size that is sold for them, address and disk included.

        Raises ``PriceError`` where no such size is sold.
        """
        asked = Size(identity.cpu_milli, identity.memory_mib)
        size = sold(self.sizes, *asked) if self.sizes else asked
        if size is None:
            what = f"{asked.cpu_milli / 1000:g} vCPU and {asked.memory_mib} MiB"
            raise PriceError(f"{self.sizes} sells nothing with {what}; ask for less")
        parts = size.cpu_milli / 1000 * self.usd_per_vcpu_hour + size.memory_mib / 1024 * self.usd_per_gib_hour
        return self.usd_per_hour + parts + self.usd_per_address_hour + self.usd_per_disk_hour

    def usd(self, identity: CellIdentity, sandbox_ns: int) -> Fraction:
        """What one sandbox costs that existed for ``sandbox_ns``."""
        billed = billed_ns(sandbox_ns, self.minimum_ns, self.increment_ns)
        return Fraction(self.usd_hour(identity)) * billed / NS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """A price sheet."""

    title: str
    date: datetime.date
    sandboxes: tuple[SandboxPrice, ...]
    worker_usd_hour: float | None
    stale: bool  # older than a year on the day on which it was loaded

    def sandbox(self, identity: CellIdentity) -> SandboxPrice:
        """The price of a cell's sandboxes, the one for its variant before the one for any.

        Raises:
            NoPrice: the sheet has none; it holds the stanza to add.
            PriceError: what is sold there is not as large.
        """
        for variant in (identity.variant, None):
            for price in self.sandboxes:
                if price.substrate == identity.substrate and price.variant == variant:
                    price.usd_hour(identity)  # or it is said only when the first sandbox is billed
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


Usd = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class PricedSandbox(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``[[sandbox]]`` of a sheet."""

    substrate: Annotated[str, msgspec.Meta(min_length=1)]
    source: Annotated[str, msgspec.Meta(min_length=1)]
    minimum_s: Annotated[float, msgspec.Meta(ge=0, le=MAX_INT / 1e9)]
    increment_s: Annotated[float, msgspec.Meta(ge=1e-9, le=MAX_INT / 1e9)]  # 1 where billing is by the second
    variant: str | None = None
    sizes: str = ""
    usd_per_hour: Usd | None = None
    usd_per_vcpu_hour: Usd | None = None
    usd_per_gib_hour: Usd | None = None
    usd_per_address_hour: Usd | None = None
    usd_per_disk_hour: Usd | None = None


class PricedWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[worker]`` of a sheet."""

    usd_per_hour: Usd


class PriceSheet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sheet as it is written."""

    date: datetime.date
    title: str = ""
    currency: Literal["USD"] = "USD"
    sandbox: tuple[PricedSandbox, ...] = ()
    worker: PricedWorker | None = None


def load_prices(path: str | Path, today: datetime.date | None = None) -> Prices:
    """Read a price sheet: a TOML file, or the bare name of a shipped one such as ``aws-fargate``.

    Raises:
        PriceError: it cannot be read, or a value is missing, unknown, negative, or lacks its source.
    """
    file = Path(path)
    try:
        if not file.exists() and (SHIPPED / f"{path}.toml").is_file():
            file = SHIPPED / f"{path}.toml"
        document = Document(file)
        date = document.data.get("date")
        if not isinstance(date, datetime.date) or isinstance(date, datetime.datetime):
            raise PriceError(f"{file}: prices change, so a sheet needs its date; add date = YYYY-MM-DD")
        sheet = document.convert(PriceSheet)
    except OSError as error:
        known = ", ".join(sorted(sheet.stem for sheet in SHIPPED.glob("*.toml")))
        raise PriceError(f"cannot read {file}: {error.strerror}; shipped sheets: {known}") from error
    except MalformedDocument as error:
        raise PriceError(str(error)) from error
    return Prices(
        title=sheet.title or file.name,
        date=sheet.date,
        sandboxes=tuple(_sandbox(told, f"{file}: sandbox {number}") for number, told in enumerate(sheet.sandbox, 1)),
        worker_usd_hour=None if sheet.worker is None else sheet.worker.usd_per_hour,
        stale=(today or datetime.datetime.now(datetime.UTC).date()) - sheet.date > STALE_AFTER,
    )


def _sandbox(told: PricedSandbox, where: str) -> SandboxPrice:
    rates: dict[str, float | None] = {rate: getattr(told, rate) for rate in _RATES}
    if all(rate is None for rate in rates.values()):
        raise PriceError(f"{where}: no price; give at least one of {', '.join(_RATES)}")
    if told.sizes and told.sizes not in SIZES:
        raise PriceError(f"{where}: unknown sizes {told.sizes!r}; known: {', '.join(SIZES)}")
    return SandboxPrice(
        substrate=told.substrate,
        variant=told.variant,
        sizes=told.sizes,
        minimum_ns=round(told.minimum_s * 1e9),
        increment_ns=round(told.increment_s * 1e9),
        source=told.source,
        **{name: rate or 0.0 for name, rate in rates.items()},
    )
