"""Published figures: what somebody printed about a substrate, kept as exactly as it was printed, with source and date.

A file holds rows (one latency of a whole trajectory, used wherever a recording is), starts (how long a sandbox took to
come, so many at a time) and speeds (how long the same work took), or some of them. They carry no trials, hence no
interval and no tail, and are marked as published wherever they appear. Starts and speeds answer nothing alone:
``costmodel.composed`` puts them together with work that was recorded.
"""

from __future__ import annotations

import datetime
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from costmodel.errors import SourceError
from costmodel.recording import CellIdentity

PROVENANCE: Final = "published"
SHIPPED: Final = Path(__file__).parent / "facts"
_ROW_KEYS: Final = {"substrate", "variant", "tier", "actions", "mode", "trajectory_s", "label", "note", "date"}
_ORDERED: Final = ("p50_s", "p95_s", "p99_s", "max_s")
_START_KEYS: Final = {"substrate", "variant", "until", "at_a_time", "samples", "wall_s", "mean_s", "note", "date"}
_SPEED_KEYS: Final = {"substrate", "variant", "work", "seconds", "note", "date"}
_FILE_KEYS: Final = {
    *("title", "provenance", "source", "licence", "date", "baseline", "cpus", "memory_mib", "notes"),
    *("rows", "starts", "speeds", "provider"),
}


class PublishedRow(NamedTuple):
    """One printed latency."""

    identity: CellIdentity
    trajectory_ns: int
    label: str  # the source's own word for the substrate
    note: str
    date: datetime.date | None


class PublishedStart(NamedTuple):
    """How long sandboxes took to come, from the request to what ``until`` says. None: not printed."""

    substrate: str
    variant: str
    until: str
    at_a_time: int  # creates in flight
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    max_s: float | None
    mean_s: float | None
    wall_s: float | None  # until all of a burst had come
    samples: int | None
    date: datetime.date
    note: str
    source: str


class PublishedSpeed(NamedTuple):
    """How long the same work took on one substrate."""

    substrate: str
    variant: str
    work: str
    seconds: float
    date: datetime.date
    note: str
    source: str


class Published(NamedTuple):
    """A file of printed figures."""

    name: str
    title: str
    source: str
    baseline: str | None  # what the source compares with
    notes: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    starts: tuple[PublishedStart, ...] = ()
    speeds: tuple[PublishedSpeed, ...] = ()
    date: datetime.date | None = None
    licence: str = ""
    provider: Mapping[str, str] = {}  # what a file of one substrate says besides, for ``costmodel.providers``


def read_published(path: Path) -> Published:
    """Read a TOML file of published figures.

    Raises:
        SourceError: it cannot be read, is not TOML, lacks a key or has a figure that makes no sense.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: {error}") from error
    if document.get("provenance") != PROVENANCE:
        raise SourceError(
            f'{path} is not a file of published latencies: it lacks provenance = "{PROVENANCE}" '
            "(a scenario is run first: taxtui run)"
        )
    _check_keys(document, _FILE_KEYS, str(path))
    tables = {kind: _tables(document, kind, path) for kind in ("rows", "starts", "speeds")}
    if not any(tables.values()):
        raise SourceError(f"{path}: no [[rows]]; each needs substrate, tier, actions and trajectory_s")
    return Published(
        name=path.name,
        title=str(document.get("title", path.stem)),
        source=str(document.get("source", "")),
        baseline=document.get("baseline"),
        notes=tuple(map(str, document.get("notes", ()))),
        rows=tuple(_row(table, where, document) for where, table in tables["rows"]),
        starts=tuple(_start(table, where, document) for where, table in tables["starts"]),
        speeds=tuple(_speed(table, where, document) for where, table in tables["speeds"]),
        date=_date(document, str(path), None),
        licence=str(document.get("licence", "")),
        provider=_texts(document, "provider", path),
    )


def shipped() -> tuple[Published, ...]:
    """The files of starts and speeds that come with the cost model."""
    return tuple(map(read_published, sorted(SHIPPED.glob("*.toml"))))


def _texts(document: dict[str, Any], key: str, path: Path) -> dict[str, str]:
    table = document.get(key, {})
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise SourceError(f"{path}: [{key}] is a table of texts")
    return table


def _tables(document: dict[str, Any], kind: str, path: Path) -> list[tuple[str, dict[str, Any]]]:
    tables = document.get(kind, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SourceError(f"{path}: no [[{kind}]], with two brackets")
    return [(f"{path}: {kind[:-1]} {number}", table) for number, table in enumerate(tables, 1)]


def _row(table: dict[str, Any], where: str, document: dict[str, Any]) -> PublishedRow:
    _check_keys(table, _ROW_KEYS, where)
    latency, actions = table.get("trajectory_s"), table.get("actions")
    if not isinstance(latency, int | float) or not 0 < latency < math.inf:
        raise SourceError(f"{where}: trajectory_s must be a number of seconds above 0, not {latency!r}")
    if not isinstance(actions, int) or actions < 1:
        raise SourceError(f"{where}: actions must be a whole number of at least 1, not {actions!r}")
    identity = CellIdentity(
        substrate=_substrate(table, where),
        variant=str(table.get("variant", "")),
        tier=str(table.get("tier", "")),
        tier_digest="",
        actions=actions,
        mode=str(table.get("mode", "")),
        concurrency=0,
        arrival="",
        think="0s",
        acquire="create",
        cache="unknown",
        cpu_milli=round(1000 * float(document.get("cpus", 1))),
        memory_mib=int(document.get("memory_mib", 1024)),
        network="",
        image="",
        environment=str(document.get("source", "")),
        substrate_version="",
    )
    date = _date(table, where, _date(document, where, None))
    return PublishedRow(identity, round(latency * 1e9), str(table.get("label", "")), str(table.get("note", "")), date)


def _start(table: dict[str, Any], where: str, document: dict[str, Any]) -> PublishedStart:
    _check_keys(table, {*_START_KEYS, *_ORDERED}, where)
    figures = {key: _seconds(table, key, where) for key in (*_ORDERED, "mean_s", "wall_s")}
    ordered = [figures[key] for key in _ORDERED if figures[key] is not None]
    if not ordered and figures["mean_s"] is None:
        raise SourceError(f"{where}: no time; give at least one of mean_s, {', '.join(_ORDERED)}")
    if ordered != sorted(ordered, key=lambda seconds: seconds or 0.0):
        raise SourceError(f"{where}: {', '.join(_ORDERED)} must ascend")
    return PublishedStart(
        substrate=_substrate(table, where),
        variant=str(table.get("variant", "")),
        until=str(table.get("until", "")),
        at_a_time=_count(table, "at_a_time", where) or 1,
        **figures,
        samples=_count(table, "samples", where),
        date=_needed_date(table, where, document),
        note=str(table.get("note", "")),
        source=str(document.get("source", "")),
    )


def _speed(table: dict[str, Any], where: str, document: dict[str, Any]) -> PublishedSpeed:
    _check_keys(table, _SPEED_KEYS, where)
    seconds = _seconds(table, "seconds", where)
    if seconds is None or not table.get("work"):
        raise SourceError(f"{where}: a speed needs the work and its seconds")
    return PublishedSpeed(
        substrate=_substrate(table, where),
        variant=str(table.get("variant", "")),
        work=str(table["work"]),
        seconds=seconds,
        date=_needed_date(table, where, document),
        note=str(table.get("note", "")),
        source=str(document.get("source", "")),
    )


def _check_keys(table: dict[str, Any], known: Iterable[str], where: str) -> None:
    if unknown := sorted(set(table) - set(known)):
        raise SourceError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")


def _substrate(table: dict[str, Any], where: str) -> str:
    if not table.get("substrate"):
        raise SourceError(f"{where}: substrate is missing")
    return str(table["substrate"])


def _seconds(table: dict[str, Any], key: str, where: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise SourceError(f"{where}: {key} must be a number of seconds above 0, not {value!r}")
    return float(value)


def _count(table: dict[str, Any], key: str, where: str) -> int | None:
    value = table.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise SourceError(f"{where}: {key} must be a whole number of at least 1, not {value!r}")
    return value


def _needed_date(table: dict[str, Any], where: str, document: dict[str, Any]) -> datetime.date:
    date = _date(table, where, _date(document, where, None))
    if date is None:
        raise SourceError(f"{where}: such figures change within weeks, so each needs its date; add date = YYYY-MM-DD")
    return date


def _date(table: dict[str, Any], where: str, usual: datetime.date | None) -> datetime.date | None:
    date = table.get("date", usual)
    if date is not None and (not isinstance(date, datetime.date) or isinstance(date, datetime.datetime)):
        raise SourceError(f"{where}: date must be as YYYY-MM-DD, not {date!r}")
    return date
