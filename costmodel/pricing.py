"""Dated price sheets, and who wrote each value. A price that is not known is an error, never a guess."""

from __future__ import annotations

import datetime
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from costmodel.errors import NoPrice, PriceError
from costmodel.recording import CellIdentity
from costmodel.sizes import SIZES
from costmodel.tariff import BILLED, CPU_BASES, IDLE, PROVISIONED, Node, SandboxPrice, UsdRates, titled

SHIPPED: Final = Path(__file__).parent / "prices"
STALE_AFTER: Final = datetime.timedelta(days=365)
_NODE: Final = {"sandboxes_per_node", "node_vcpus", "node_gib"}
_AMOUNTS: Final = {"disk_gib", "free_vcpus", "free_gib", "free_disk_gib", "gib_per_unit"} | _NODE
_WORDS: Final = {"substrate", "variant", "sizes", "source", "date", "cpu", "idle"}
_KEYS: Final = {*_WORDS, *_AMOUNTS, "minimum_s", "increment_s", *UsdRates._fields}
_NEEDS: Final = {
    "usd_per_unit_hour": ("gib_per_unit",),
    "usd_per_disk_gib_hour": ("disk_gib",),
    "usd_per_node_hour": ("sandboxes_per_node", "node_vcpus and node_gib"),
    "free_vcpus": ("usd_per_vcpu_hour",),
    "free_gib": ("usd_per_gib_hour",),
    "free_disk_gib": ("usd_per_disk_gib_hour",),
}
"""What says nothing without one of these."""


def priced(substrate: str, variant: str, cpus: float, memory_mib: int) -> CellIdentity:
    """A cell of these limits: of its identity a price depends on four fields only."""
    unpriced = CellIdentity._make("" for _ in CellIdentity._fields)
    return unpriced._replace(substrate=substrate, variant=variant, cpu_milli=round(cpus * 1000), memory_mib=memory_mib)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """A price sheet, or several of which the first that has a price counts."""

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
                    price.size(identity)  # or it is said only when the first sandbox is billed
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

    def beside(self, other: Prices) -> Prices:
        """Both sheets as one; what both price is this one's."""
        return Prices(
            title=f"{self.title} and {other.title}",
            date=min(self.date, other.date),
            sandboxes=self.sandboxes + other.sandboxes,
            worker_usd_hour=other.worker_usd_hour if self.worker_usd_hour is None else self.worker_usd_hour,
            stale=self.stale or other.stale,
        )


def load_prices(path: str | Path, today: datetime.date | None = None) -> Prices:
    """Read a price sheet: a TOML file, or the bare name of a shipped one such as ``aws-fargate``.

    Raises:
        PriceError: it cannot be read, or a value is missing, unknown, negative, or lacks its source.
    """
    file = Path(path)
    try:
        if not file.exists() and (SHIPPED / f"{path}.toml").is_file():
            file = SHIPPED / f"{path}.toml"
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        known = ", ".join(sorted(sheet.stem for sheet in SHIPPED.glob("*.toml")))
        raise PriceError(f"cannot read {file}: {error.strerror}; shipped sheets: {known}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PriceError(f"{file}: {error}") from error
    date = _date(document, f"{file}: prices change, so a sheet needs its date; add date = YYYY-MM-DD")
    if document.get("currency", "USD") != "USD":
        raise PriceError(f"{file}: only US dollars are understood, not {document['currency']!r}")
    tables = document.get("sandbox", [])
    if not isinstance(tables, list):
        raise PriceError(f"{file}: write [[sandbox]], with two brackets")
    worker = document.get("worker")
    now = today or datetime.datetime.now(datetime.UTC).date()
    reader = _Reader(str(document.get("title", file.name)), date, now)
    return Prices(
        title=reader.title,
        date=date,
        sandboxes=tuple(reader.sandbox(table, f"{file}: sandbox {number}") for number, table in enumerate(tables, 1)),
        worker_usd_hour=None if worker is None else _number(worker, "usd_per_hour", f"{file}: worker"),
        stale=now - date > STALE_AFTER,
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    title: str
    date: datetime.date
    today: datetime.date

    def sandbox(self, table: dict[str, Any], where: str) -> SandboxPrice:
        if not isinstance(table, dict):
            raise PriceError(f"{where}: not a table")
        if unknown := sorted(set(table) - _KEYS):
            raise PriceError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
        if not isinstance(table.get("substrate"), str) or not table["substrate"]:
            raise PriceError(f"{where}: substrate is missing")
        sources = _sources(table, where)
        _check_parts(table, where)
        rates = {rate: _range(table, rate, where) for rate in UsdRates._fields if rate in table}
        if len(sources) < 2 and (disputed := [rate for rate, (low, high) in rates.items() if low < high]):
            raise PriceError(f"{where}: {disputed[0]} is a range, which needs the sources that disagree; source = [..]")
        amounts = {key: _number(table, key, where) for key in sorted(_AMOUNTS - _NODE) if key in table}
        if not amounts.get("gib_per_unit", 1.0):
            raise PriceError(f"{where}: gib_per_unit must be above 0")
        minimum, increment = _number(table, "minimum_s", where), _number(table, "increment_s", where)
        if round(increment * 1e9) < 1:
            raise PriceError(f"{where}: increment_s must be above 0; 1 where billing is by the second")
        date = _date(table, f"{where}: date must be as YYYY-MM-DD") if "date" in table else self.date
        return SandboxPrice(
            substrate=table["substrate"],
            variant=table.get("variant"),
            rates=UsdRates(**{rate: high for rate, (_, high) in rates.items()}),
            cheaper=UsdRates(**{rate: low for rate, (low, _) in rates.items()}),
            cpu=_one_of(table, "cpu", PROVISIONED, CPU_BASES, where),
            idle=_one_of(table, "idle", BILLED, IDLE, where),
            node=_node(table, where),
            sizes=_one_of(table, "sizes", "", ("", *SIZES), where),
            minimum_ns=round(minimum * 1e9),
            increment_ns=round(increment * 1e9),
            source="; ".join(sources),
            sheet=titled(self.title, date),
            stale=self.today - date > STALE_AFTER,
            **amounts,
        )


def _sources(table: dict[str, Any], where: str) -> list[str]:
    source = table.get("source")
    sources = source if isinstance(source, list) else [source]
    named = [one for one in sources if isinstance(one, str) and one]
    if not named or len(named) < len(sources):
        raise PriceError(f"{where}: source is missing")
    return named


def _check_parts(table: dict[str, Any], where: str) -> None:
    """That there is a price, and nothing in it lacks what gives it a meaning."""
    if not any(rate in table for rate in UsdRates._fields):
        raise PriceError(f"{where}: no price; give at least one of {', '.join(UsdRates._fields)}")
    for key, needed in _NEEDS.items():
        if key in table and not any(all(part in table for part in need.split(" and ")) for need in needed):
            raise PriceError(f"{where}: {key} needs {' or '.join(needed)}; add {needed[0]} = ?")
    if table.get("cpu", PROVISIONED) != PROVISIONED and "usd_per_vcpu_hour" not in table:
        raise PriceError(f"{where}: cpu = {table['cpu']!r} needs usd_per_vcpu_hour; add usd_per_vcpu_hour = ?")
    if _NODE & set(table) and "usd_per_node_hour" not in table:
        raise PriceError(f"{where}: {min(_NODE & set(table))} needs usd_per_node_hour; add usd_per_node_hour = ?")


def _node(table: dict[str, Any], where: str) -> Node | None:
    if "usd_per_node_hour" not in table:
        return None
    if "sandboxes_per_node" not in table:
        return Node(vcpus=_number(table, "node_vcpus", where), gib=_number(table, "node_gib", where))
    if spare := sorted(_NODE & set(table) - {"sandboxes_per_node"}):
        raise PriceError(f"{where}: sandboxes_per_node says how many fit; leave {spare[0]} out")
    number = table["sandboxes_per_node"]
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise PriceError(f"{where}: sandboxes_per_node must be a whole number of at least 1, not {number!r}")
    return Node(number)


def _one_of(table: dict[str, Any], key: str, usual: str, known: tuple[str, ...], where: str) -> str:
    word = table.get(key, usual)
    if word not in known:
        raise PriceError(f"{where}: unknown {key} {word!r}; known: {', '.join(filter(None, known))}")
    return str(word)


def _date(table: dict[str, Any], complaint: str) -> datetime.date:
    date = table.get("date")
    if not isinstance(date, datetime.date) or isinstance(date, datetime.datetime):
        raise PriceError(complaint)
    return date


def _range(table: dict[str, Any], key: str, where: str) -> tuple[float, float]:
    """A value, or the least and the most that its sources say."""
    value = table[key]
    if not isinstance(value, list):
        number = _number(table, key, where)
        return number, number
    if len(value) != 2:
        raise PriceError(f"{where}: {key} must be a number or [least, most], not {value!r}")
    low, high = (_number({key: end}, key, where) for end in value)
    if low > high:
        raise PriceError(f"{where}: {key} must be [least, most], not {value!r}")
    return low, high


def _number(table: dict[str, Any], key: str, where: str) -> float:
    value = table.get(key) if isinstance(table, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise PriceError(f"{where}: {key} must be a number of at least 0, not {value!r}")
    return float(value)
