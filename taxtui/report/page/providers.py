"""Dated rows of every provider for a site: dispatch, starts, failures, prices, limits and scale.

Rows come from published figures, shipped price sheets and plans, and recordings, each with its provenance. The sources
used different machines and commands, so rows are not ranked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from costmodel import (
    NS_PER_S,
    PROVENANCE,
    Interval,
    Percentile,
    Prices,
    Profile,
    Published,
    PublishedFigure,
    known_profiles,
    load_prices,
    load_profile,
)
from costmodel import sheet as price_sheets
from taxtui.report.measured.rows import MeasuredRow
from taxtui.report.numbers import NOTHING, NS, SHARE, duration, number, percent, plus_minus
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
    sort: float | None  # the number to sort by
    measure: str
    date: str
    provenance: str  # measured, emulated, imported or published
    source: str
    address: str = ""  # of the source
    concurrency: int | None = None
    samples: int | None = None
    note: str = ""


class FigureTable(NamedTuple):
    """The rows of one quantity."""

    name: str
    title: str
    note: str
    rows: list[ProviderRow]


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


def _largest(rows: Iterable[MeasuredRow]) -> Iterable[MeasuredRow]:
    """Return the cell with the most commands of each substrate, provenance, mode and concurrency."""
    descending = sorted(rows, key=_commands, reverse=True)
    return {  # the first of equals stays
        (row.identity.label, row.cell.provenance, row.identity.mode, row.identity.concurrency): row
        for row in reversed(descending)
    }.values()


def _commands(row: MeasuredRow) -> int:
    return sum(max(1, len(trial.durations_ns)) for trial in row.cell.trials)


def address_of(source: str) -> str:
    """Return the first https address in the text of a source, else ""."""
    for pattern, address in _ADDRESSES:
        if match := pattern.search(source):
            return address(match)
    return ""


# ----------------------------------------------------------------------------------------------------- public sources


def _row(quantity: str, item: Any, values: Iterable[str], sort: float, measure: str, source: str) -> ProviderRow:
    """Return a row of a public source; ``item``: a figure, start, speed, price or plan with its own fields."""
    return ProviderRow(
        quantity,
        printable(":".join(filter(None, (item.substrate, getattr(item, "variant", None))))),
        tuple(map(printable, values)),
        sort,
        printable(measure),
        str(getattr(item, "date", "")),
        PROVENANCE,
        printable(source),
        address_of(source),
        getattr(item, "concurrency", None),
        getattr(item, "samples", None),
        printable(getattr(item, "note", "")),
    )


def _published(file: Published) -> Iterator[ProviderRow]:
    default_source = file.source or file.name
    for figure in (*file.figures, *file.starts):
        yield _figure(figure, figure.source or default_source)


def _figure(figure: PublishedFigure, source: str) -> ProviderRow:
    form = _form(figure.unit)
    texts = [] if figure.value is None else [form(figure.value)]
    if figure.low is not None and figure.high is not None:
        texts.append(f"{form(figure.low)} … {form(figure.high)}")
    texts += [f"{name} {form(value)}" for name in STATISTICS if (value := getattr(figure, name)) is not None]
    numbers = (getattr(figure, name) for name in ("p50", "value", "low", *STATISTICS))
    sort = next(number for number in numbers if number is not None)
    return _row(figure.quantity, figure, texts, sort, figure.measure, source)


def _form(unit: str) -> Callable[[float], str]:
    if unit == "s":
        return lambda value: duration(value * NS_PER_S)
    if unit == "share":
        return percent
    if unit.startswith("USD"):
        return lambda value: f"{value:g} {unit}"
    return lambda value: f"{number(value)} {unit}"


def _priced(prices: Prices) -> Iterator[ProviderRow]:
    for price in prices.sandboxes:
        texts = []
        for rate, (low, high) in price.rates.items():
            if high or low:
                unit = rate.removeprefix("usd_per_").replace("_", "-")
                texts.append(f"{high:g} USD/{unit}" if high == low else f"{low:g} … {high:g} USD/{unit}")
        basis = {"provisioned": "requested vCPUs", "active": "CPU time used", "greater": "the greater of both"}
        sort = price.rate("usd_per_vcpu_hour") or max(map(price.rate, price.rates))
        measure = f"CPU billed: {basis[price.cpu]}"
        yield _row("price", price, texts, sort, measure, price.cited)._replace(date=str(prices.date))


def _limits(profile: Profile) -> Iterator[ProviderRow]:
    words = {"concurrent": "{} sandboxes", "creates_per_s": "{} creates/s", "burst": "{} creates at once"}
    limits = {limit: value for limit in words if (value := getattr(profile, limit)) is not None}
    texts = [words[limit].format(number(value)) for limit, value in limits.items()]
    sort, plan = float(next(iter(limits.values()))), f"plan {profile.title}"
    yield _row("limit", profile, texts, sort, plan, profile.source)._replace(note=printable("; ".join(profile.notes)))


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
        " … ".join(dict.fromkeys((days[0], days[-1]))),
        {"stand_in": "emulated"}.get(row.cell.provenance, row.cell.provenance),
        printable(", ".join(names)),
        quote(pages.get(names[0], "")) if len(names) == 1 else "",
        row.identity.concurrency or None,
    )
    for quantity, column in (("dispatch", "dispatch"), ("start", "cold_start")):
        if (summary := row.summary(column)) is not None:
            lines = (_percentile("p50", summary.p50), _percentile("p95", summary.p95))
            sort = None if summary.p50.value is None else summary.p50.value / NS_PER_S
            measure = f"until: first command; {base.measure}" if quantity == "start" else base.measure
            yield base._replace(quantity=quantity, values=lines, sort=sort, samples=summary.n, measure=measure)
    yield base._replace(
        quantity="failures",
        values=(f"{plus_minus(row.failures, unit=SHARE)} of trials",),
        sort=row.failures.value,
        samples=len(row.cell.trials),
    )


def _percentile(name: str, value: Percentile) -> str:
    """Return ``p95 126 ms ±15``, or the number of values that are needed."""
    if value.value is None:
        return f"{name} {NOTHING}: needs {value.needs:,} values"
    return f"{name} {plus_minus(Interval(value.value, value.low, value.high), unit=NS)}"


def _day(run_id: str) -> str:
    match = _DAY.match(run_id)
    return "-".join(match.groups()) if match else "unknown"
