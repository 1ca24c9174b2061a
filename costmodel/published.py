"""Published summaries: one latency per substrate that somebody printed, used wherever a recording is.

They carry no trials, hence no interval and no tail, and are marked as published wherever they appear.
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

from costmodel.errors import SourceError
from costmodel.recording import CellIdentity

PROVENANCE: Final = "published"
_KEYS: Final = {"substrate", "variant", "tier", "actions", "mode", "trajectory_s", "label", "note"}


class PublishedRow(NamedTuple):
    """One printed latency, kept as exactly as it was printed."""

    identity: CellIdentity
    trajectory_ns: int
    label: str  # the source's own word for the substrate
    note: str


class Published(NamedTuple):
    """A file of printed latencies."""

    name: str
    title: str
    source: str
    baseline: str | None  # what the source compares with
    notes: tuple[str, ...]
    rows: tuple[PublishedRow, ...]


def read_published(path: Path) -> Published:
    """Read a TOML file of published latencies.

    Raises:
        SourceError: it cannot be read, is not TOML, lacks a key or has a latency that is not above 0.
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
    tables = document.get("rows")
    if not isinstance(tables, list) or not tables:
        raise SourceError(f"{path}: no [[rows]]; each needs substrate, tier, actions and trajectory_s")
    return Published(
        name=path.name,
        title=str(document.get("title", path.stem)),
        source=str(document.get("source", "")),
        baseline=document.get("baseline"),
        notes=tuple(map(str, document.get("notes", ()))),
        rows=tuple(_row(table, f"{path}: row {number}", document) for number, table in enumerate(tables, 1)),
    )


def _row(table: dict[str, Any], where: str, document: dict[str, Any]) -> PublishedRow:
    if unknown := sorted(set(table) - _KEYS):
        raise SourceError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
    latency, actions = table.get("trajectory_s"), table.get("actions")
    if not isinstance(latency, int | float) or not 0 < latency < math.inf:
        raise SourceError(f"{where}: trajectory_s must be a number of seconds above 0, not {latency!r}")
    if not isinstance(actions, int) or actions < 1:
        raise SourceError(f"{where}: actions must be a whole number of at least 1, not {actions!r}")
    if not table.get("substrate"):
        raise SourceError(f"{where}: substrate is missing")
    identity = CellIdentity(
        substrate=str(table["substrate"]),
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
    return PublishedRow(identity, round(latency * 1e9), str(table.get("label", "")), str(table.get("note", "")))
