"""Published figures of substrates, as printed, each with a source and date.

A file has one or more kinds of tables. ``[[rows]]`` are latencies of a whole trajectory, used wherever a recording is.
``[[starts]]`` are figures of the start times of sandboxes by concurrency, and ``[[figures]]`` of every other quantity,
for the page of ``taxtui site``.

Published figures have no trials, hence no interval and no tail, and are marked as published wherever they appear.
Starts and figures answer nothing alone: ``costmodel.analysis.project`` combines starts with recorded work. Date,
source and sandbox size at the top of a file apply to every table without its own.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from costmodel.errors import SourceError
from costmodel.recording.trial import CellIdentity
from costmodel.toml import Count, Document, MalformedDocument, Text
from costmodel.units import MAX_INT

PROVENANCE: Final = "published"
Seconds = Annotated[float, msgspec.Meta(ge=1e-9, le=MAX_INT / 1e9)]
"""A time above 0 and below 292 years, to fit int ns."""
FigureDate = Annotated[
    datetime.date,
    msgspec.Meta(description="such figures change within weeks, so each needs its date; add date = YYYY-MM-DD"),
]
Cpus = Annotated[float, msgspec.Meta(gt=0, le=MAX_INT // 1000)]


class PublishedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A printed latency."""

    substrate: Text
    actions: Count
    trajectory_s: Seconds
    variant: str = ""
    tier: str = ""
    mode: str = ""
    cpus: Cpus = 1.0
    memory_mib: Count = 1024
    label: str = ""  # name of the substrate in the source
    note: str = ""
    date: datetime.date | None = None
    source: str = ""

    @property
    def trajectory_ns(self) -> int:
        return round(self.trajectory_s * 1e9)

    @property
    def identity(self) -> CellIdentity:
        """Cell of the latency; "" for unprinted fields."""
        return CellIdentity(
            substrate=self.substrate,
            variant=self.variant,
            tier=self.tier,
            actions=self.actions,
            mode=self.mode,
            cpu_milli=round(1000 * self.cpus),
            memory_mib=self.memory_mib,
            environment=self.source,
        )


Quantity = Literal["dispatch", "start", "suspend", "speed", "failures", "price", "limit", "scale"]
_STATISTICS: Final = ("min", "p50", "p90", "p95", "p99", "max")
_TIMES: Final = ("dispatch", "start", "suspend", "speed")
_NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class PublishedFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One printed figure about a substrate: a value, a range where sources conflict, or statistics of a sample.

    A start is the time from the request to the event in ``measure``, with ``concurrency`` creates in flight.
    """

    substrate: Text
    quantity: Quantity
    unit: Text
    measure: Text  # what exactly was measured or is charged, and where
    date: FigureDate
    source: Annotated[str, msgspec.Meta(min_length=1, description='a figure needs its source; add source = "…"')]
    variant: str = ""
    concurrency: Count | None = None
    samples: Count | None = None
    value: _NotNegative | None = None
    low: _NotNegative | None = None  # with high: the range of a conflict, or of what the source prints
    high: _NotNegative | None = None
    mean: _NotNegative | None = None
    min: _NotNegative | None = None
    p50: _NotNegative | None = None
    p90: _NotNegative | None = None
    p95: _NotNegative | None = None
    p99: _NotNegative | None = None
    max: _NotNegative | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Check for a figure, ascending statistics, times above 0 in seconds and shares below 1."""
        ascending = [value for name in _STATISTICS if (value := getattr(self, name)) is not None]
        numbers = [value for value in (self.value, self.mean, self.low, self.high, *ascending) if value is not None]
        if not numbers:
            raise ValueError(f"no figure; give value, low and high, mean, or one of {', '.join(_STATISTICS)}")
        if ascending != sorted(ascending):
            raise ValueError(f"{', '.join(_STATISTICS)} must ascend")
        if (self.low is None) != (self.high is None) or (self.low or 0) > (self.high or 0):
            raise ValueError("low and high must both be given, low first")
        if self.quantity in _TIMES and (self.unit != "s" or min(numbers) <= 0):
            raise ValueError(f'{self.quantity} is a time above 0; write it in seconds, with unit = "s"')
        if self.quantity == "start" and not 1e-9 <= min(numbers) <= max(numbers) <= MAX_INT / 1e9:
            raise ValueError("a start takes from 1 ns to 292 years")
        if self.unit == "share" and max(numbers) > 1:
            raise ValueError("a share must be at most 1")


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of printed figures."""

    provenance: str
    name: str = ""  # of the file
    title: str = ""
    source: str = ""
    licence: str = ""
    date: datetime.date | None = None
    baseline: str | None = None  # reference of the source's comparisons
    cpus: Cpus = 1.0
    memory_mib: Count = 1024
    notes: tuple[str, ...] = ()
    rows: tuple[PublishedRow, ...] = ()
    starts: tuple[PublishedFigure, ...] = ()
    figures: tuple[PublishedFigure, ...] = ()

    def __post_init__(self) -> None:
        if not (self.rows or self.starts or self.figures):
            raise ValueError("no [[rows]]; each needs substrate, tier, actions and trajectory_s")
        if any(start.quantity != "start" for start in self.starts):
            raise ValueError("starts: each is a start; write other quantities under [[figures]]")
        seen = set()
        for number, row in enumerate(self.rows, 1):
            if row.identity in seen:
                words = " ".join(filter(None, (row.substrate, row.variant, row.tier, f"x {row.actions}", row.mode)))
                raise ValueError(f"rows: row {number} is {words} once more; keep one of them")
            seen.add(row.identity)


_TABLES: Final = {"rows": PublishedRow, "starts": PublishedFigure, "figures": PublishedFigure}
_START: Final = {"quantity": "start", "unit": "s", "measure": "until usable", "concurrency": 1}
"""Keys of every start that says nothing else."""


def read_published(path: Path) -> Published:
    """Read a TOML file of published figures.

    Raises:
        SourceError: the file is unreadable or not TOML, lacks a key, or has an impossible figure.
    """
    try:
        document = Document(path)
        if document.data.get("provenance") != PROVENANCE:
            raise SourceError(
                f'{path} is not a file of published latencies: it lacks provenance = "{PROVENANCE}" '
                "(a scenario is run first: taxtui run)"
            )
        for key, kind in _TABLES.items():  # the file's common keys apply to each table
            of_all = {name: value for name, value in document.data.items() if name in kind.__struct_fields__}
            of_all |= _START if key == "starts" else {}
            tables = document.data.get(key)
            for table in tables if isinstance(tables, list) else ():
                if isinstance(table, dict):
                    table.update(of_all | table)
        file = document.convert(Published)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except MalformedDocument as error:
        raise SourceError(str(error)) from error
    return msgspec.structs.replace(file, name=path.name, title=file.title or path.stem)
