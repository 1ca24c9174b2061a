"""Dated rows of every provider for a site: dispatch, starts, failures, prices, limits and scale.

Rows come from published figures, shipped price sheets and plans, and recordings, each with its provenance. The sources
used different machines and commands, so rows are not ranked.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from costmodel import (
    NS_PER_S,
    PROVENANCE,
    Percentile,
    Prices,
    Profile,
    Published,
    PublishedFigure,
    PublishedStart,
    known_profiles,
    load_prices,
    load_profile,
)
from costmodel import sheet as price_sheets
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.numbers import NOTHING, duration, number, percent
from taxtui.report.page.views import printable

TITLES: Final = {
    "dispatch": "Dispatch",
    "start": "Starts",
    "failures": "Failures",
    "price": "Prices",
    "limit": "Limits",
    "suspend": "Suspend and resume",
    "speed": "Speed of the same work",
    "scale": "Scale",
}
"""Quantity → title, in the order of the page."""
COVERED: Final = ("dispatch", "start", "failures", "price", "limit")
"""Quantities that every provider should have."""
NOTES: Final = {
    "dispatch": "Published round trips contain the command's own time; recordings separate it.",
    "start": "Time from the request to the point named in the row.",
    "failures": "Sources count different events; compare the column “measure” first.",
    "price": "List prices. A range is a conflict between sources.",
    "limit": "Limits of one account. A range is a conflict between sources.",
}
STATISTICS: Final = ("min", "p50", "p90", "p95", "p99", "max", "mean")
_DAY: Final = re.compile(r"(2\d{3})(\d\d)(\d\d)t\d{6}z-")
_ADDRESSES: Final = (
    (re.compile(r"https://[\w.-]+(?:/[\w./%#?=&-]*)?"), lambda match: match[0]),
    (
        re.compile(r"github\.com/([\w.-]+/[\w.-]+)#(\d+)"),
        lambda match: f"https://github.com/{match[1]}/issues/{match[2]}",
    ),
    (re.compile(r"github\.com/[\w.-]+/[\w.-]+"), lambda match: f"https://{match[0]}"),
    (re.compile(r"arXiv (\d{4}\.\d{5})"), lambda match: f"https://arxiv.org/abs/{match[1]}"),
)
"""Patterns in the text of a source, each with its address."""


class ProviderRow(NamedTuple):
    """One row of a table, with clean texts."""

    quantity: str
    provider: str
    values: tuple[str, ...]  # one per statistic, with its interval
    sort: float | None  # the first value, to sort by
    measure: str
    concurrency: int | None
    samples: int | None
    date: str
    provenance: str  # measured, emulated, imported or published
    source: str
    address: str = ""  # of the source
    note: str = ""


class FigureTable(NamedTuple):
    """The rows of one quantity."""

    name: str
    title: str
    note: str
    rows: list[ProviderRow]


class Coverage(NamedTuple):
    """Number of rows of a provider for each quantity in ``COVERED``."""

    provider: str
    counts: tuple[int, ...]


def provider_tables(
    published: Iterable[Published], rows: Iterable[MeasuredRow], pages: dict[str, str], prices: Prices | None
) -> list[FigureTable]:
    """Return one table for each quantity with rows; ``pages``: name of a recording → its page."""
    sheets = [load_prices(path.stem) for path in sorted(price_sheets.SHIPPED_PRICES.glob("*.toml"))]
    every = [
        *(line for row in _largest(rows) for line in _recorded(row, pages)),
        *(line for file in published for line in _published(file)),
        *(line for sheet in [*([prices] if prices else []), *sheets] for line in _priced(sheet)),
        *(line for name in known_profiles() for line in _limits(load_profile(name))),
    ]
    tables = []
    for name, title in TITLES.items():
        lines = [line for line in dict.fromkeys(every) if line.quantity == name]
        lines.sort(key=lambda line: line.date, reverse=True)
        lines.sort(key=lambda line: (line.provider.casefold(), line.provenance == PROVENANCE, line.concurrency or 0))
        if lines:
            tables.append(FigureTable(name, title, NOTES.get(name, ""), lines))
    return tables


def _largest(rows: Iterable[MeasuredRow]) -> list[MeasuredRow]:
    """Return the cell with the most commands of each substrate, provenance, mode and concurrency."""
    largest: dict[tuple[object, ...], MeasuredRow] = {}
    for row in rows:
        identity = row.identity
        key = identity.label, row.cell.provenance, identity.mode, identity.concurrency
        if key not in largest or _commands(row) > _commands(largest[key]):
            largest[key] = row
    return list(largest.values())


def _commands(row: MeasuredRow) -> int:
    return sum(max(1, len(trial.durations_ns)) for trial in row.cell.trials)


def coverage(tables: Sequence[FigureTable]) -> list[Coverage]:
    """Return the number of rows of each provider for each quantity; trainers with failures alone are left out."""
    counts: dict[str, dict[str, int]] = {}
    for table in tables:
        for row in table.rows:
            provider = row.provider.partition(":")[0].casefold()
            quantities = counts.setdefault(provider, {})
            quantities[table.name] = quantities.get(table.name, 0) + 1
    return [
        Coverage(provider, tuple(quantities.get(name, 0) for name in COVERED))
        for provider, quantities in sorted(counts.items())
        if any(name in quantities for name in COVERED if name != "failures")
    ]


def address_of(source: str) -> str:
    """Return the first https address in the text of a source, else ""."""
    for pattern, address in _ADDRESSES:
        if match := pattern.search(source):
            return address(match)
    return ""


# ---------------------------------------------------------------------------------------------------------- published


def _published(file: Published) -> Iterator[ProviderRow]:
    for figure in file.figures:
        yield _figure(figure, file)
    for start in file.starts:
        yield _start(start, file)
    speeds = {(figure.substrate, figure.measure) for figure in file.figures if figure.quantity == "speed"}
    for speed in file.speeds:
        if (speed.substrate, speed.work) not in speeds:
            row = _row("speed", speed.substrate, speed.variant, speed.date, speed.source, file)
            value = duration(speed.seconds * NS_PER_S)
            yield row._replace(
                values=(value,), sort=speed.seconds, measure=printable(speed.work), note=printable(speed.note)
            )


def _row(quantity: str, substrate: str, variant: str, date: datetime.date, source: str, file: Published) -> ProviderRow:
    provider = ":".join(filter(None, (substrate, variant)))
    text = source or file.source or file.name
    return ProviderRow(
        quantity,
        printable(provider),
        (),
        None,
        "",
        None,
        None,
        str(date),
        PROVENANCE,
        printable(text),
        address_of(text),
    )


def _figure(figure: PublishedFigure, file: Published) -> ProviderRow:
    form = _form(figure.unit)
    values = [f"{name} {form(value)}" for name in STATISTICS if (value := getattr(figure, name)) is not None]
    numbers = [value for name in STATISTICS if (value := getattr(figure, name)) is not None]
    if figure.low is not None and figure.high is not None:
        values.insert(0, f"{form(figure.low)} … {form(figure.high)}")
        numbers.insert(0, figure.low)
    if figure.value is not None:
        values.insert(0, form(figure.value))
        numbers.insert(0, figure.value)
    row = _row(figure.quantity, figure.substrate, figure.variant, figure.date, figure.source, file)
    return row._replace(
        values=tuple(map(printable, values)),
        sort=figure.p50 if figure.p50 is not None else numbers[0],
        measure=printable(figure.measure),
        concurrency=figure.concurrency,
        samples=figure.samples,
        note=printable(figure.note),
    )


def _form(unit: str) -> Callable[[float], str]:
    if unit == "s":
        return lambda value: duration(value * NS_PER_S)
    if unit == "share":
        return percent
    if unit.startswith("USD"):
        return lambda value: f"{value:g} {unit}"
    return lambda value: f"{number(value)} {unit}"


def _start(start: PublishedStart, file: Published) -> ProviderRow:
    times = {name: getattr(start, f"{name}_s") for name in ("p50", "p95", "p99", "max", "mean")}
    values = [f"{name} {duration(seconds * NS_PER_S)}" for name, seconds in times.items() if seconds is not None]
    if start.wall_s is not None:
        values.append(f"all {duration(start.wall_s * NS_PER_S)}")
    row = _row("start", start.substrate, start.variant, start.date, start.source or file.source, file)
    return row._replace(
        values=tuple(values),
        sort=next(seconds for seconds in times.values() if seconds is not None),
        measure=printable(f"until: {start.until}" if start.until else ""),
        concurrency=start.at_a_time,
        samples=start.samples,
        note=printable(start.note),
    )


# --------------------------------------------------------------------------------------------------- sheets and plans


def _priced(prices: Prices) -> Iterator[ProviderRow]:
    for price in prices.sandboxes:
        lines = []
        for rate, high, low in zip(price.rates._fields, price.rates, price.cheaper, strict=True):
            if high or low:
                unit = rate.removeprefix("usd_per_").replace("_", "-")
                lines.append(f"{high:g} USD/{unit}" if high == low else f"{low:g} … {high:g} USD/{unit}")
        provider = ":".join(filter(None, (price.substrate, price.variant)))
        basis = {"provisioned": "requested vCPUs", "active": "CPU time used", "greater": "the greater of both"}
        yield ProviderRow(
            "price",
            printable(provider),
            tuple(lines),
            price.rates.usd_per_vcpu_hour or max(price.rates),
            f"CPU billed: {basis[price.cpu]}",
            None,
            None,
            str(prices.date),
            PROVENANCE,
            printable(price.source),
            address_of(price.source),
        )


def _limits(profile: Profile) -> Iterator[ProviderRow]:
    words = {"concurrent": "{} sandboxes", "creates_per_s": "{} creates/s", "burst": "{} creates at once"}
    limits = {limit: value for limit in words if (value := getattr(profile, limit)) is not None}
    values = [words[limit].format(number(value)) for limit, value in limits.items()]
    values += [
        f"or {words[dispute.limit].format(number(dispute.value))}: {dispute.source}" for dispute in profile.disputed
    ]
    yield ProviderRow(
        "limit",
        printable(profile.substrate),
        tuple(map(printable, values)),
        float(next(iter(limits.values()))),
        printable(f"plan {profile.title}"),
        None,
        None,
        str(profile.date),
        PROVENANCE,
        printable(profile.source),
        address_of(profile.source),
        printable("; ".join(profile.notes)),
    )


# --------------------------------------------------------------------------------------------------------- recordings


def _recorded(row: MeasuredRow, pages: dict[str, str]) -> Iterator[ProviderRow]:
    """Yield the rows of a cell: dispatch, start and failures."""
    days = sorted({_day(recording.run_id) for recording in row.cell.recordings})
    names = row.cell.sources
    work = f"{row.identity.tier} x {row.length} {row.identity.mode}" if row.identity.actions else row.identity.tier
    base = ProviderRow(
        "",
        printable(row.identity.label),
        (),
        None,
        printable(work),
        row.identity.concurrency or None,
        None,
        " … ".join(dict.fromkeys((days[0], days[-1]))),
        {"stand_in": "emulated"}.get(row.cell.provenance, row.cell.provenance),
        printable(", ".join(names)),
        quote(pages.get(names[0], "")) if len(names) == 1 else "",
    )
    for quantity, column in (("dispatch", "dispatch"), ("start", "cold_start")):
        if (summary := row.summary(column)) is not None:
            lines = (_percentile("p50", summary.p50), _percentile("p95", summary.p95))
            sort = None if summary.p50.value is None else summary.p50.value / NS_PER_S
            measure = f"until: first command; {base.measure}" if quantity == "start" else base.measure
            yield base._replace(quantity=quantity, values=lines, sort=sort, samples=summary.n, measure=measure)
    failures = row.failures
    interval = "" if failures.low is None or failures.high is None else _span(failures.low, failures.high)
    yield base._replace(
        quantity="failures",
        values=(f"{percent(failures.value)}{interval} of trials",),
        sort=failures.value,
        samples=len(row.cell.trials),
    )


def _span(low: float, high: float) -> str:
    return f" ({percent(low)} … {percent(high)})"


def _percentile(name: str, value: Percentile) -> str:
    """Return ``p95 126 ms (110–140)``, or the number of values that are needed."""
    if value.value is None:
        return f"{name} {NOTHING}: needs {value.needs:,} values"
    if value.low is None or value.high is None:
        return f"{name} {duration(value.value)}"
    first, _, interval = duration(value.value, value.low, value.high).partition("\n")
    return f"{name} {first} ({interval})"


def _day(run_id: str) -> str:
    match = _DAY.match(run_id)
    return "-".join(match.groups()) if match else "unknown"
