"""Published summaries: one latency per substrate that somebody printed, used wherever a recording is.

They carry no trials, hence no interval and no tail, and are marked as published wherever they appear.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from costmodel.documents import Document, MalformedDocument
from costmodel.errors import SourceError
from costmodel.events import MAX_INT
from costmodel.recording import CellIdentity

PROVENANCE: Final = "published"
MAX_CPUS: Final = MAX_INT // 1000
Seconds = Annotated[float, msgspec.Meta(ge=1e-9, le=MAX_INT / 1e9)]
"""A time that nanoseconds can say: above 0, below 292 years."""


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


class PublishedTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``[[rows]]`` of the file."""

    substrate: Annotated[str, msgspec.Meta(min_length=1)]
    actions: Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)]
    trajectory_s: Seconds
    variant: str = ""
    tier: str = ""
    mode: str = ""
    label: str = ""
    note: str = ""


class PublishedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    provenance: str
    rows: Annotated[tuple[PublishedTable, ...], msgspec.Meta(min_length=1)]
    title: str = ""
    source: str = ""
    baseline: str | None = None
    cpus: Annotated[float, msgspec.Meta(gt=0, le=MAX_CPUS)] = 1.0
    memory_mib: Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)] = 1024
    notes: tuple[str, ...] = ()


def read_published(path: Path) -> Published:
    """Read a TOML file of published latencies.

    Raises:
        SourceError: it cannot be read, is not TOML, lacks a key or has a value that cannot be.
    """
    try:
        document = Document(path)
        if document.data.get("provenance") != PROVENANCE:
            raise SourceError(
                f'{path} is not a file of published latencies: it lacks provenance = "{PROVENANCE}" '
                "(a scenario is run first: taxtui run)"
            )
        told = document.convert(PublishedFile)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except MalformedDocument as error:
        raise SourceError(str(error)) from error
    return Published(
        name=path.name,
        title=told.title or path.stem,
        source=told.source,
        baseline=told.baseline,
        notes=told.notes,
        rows=tuple(_row(row, told) for row in told.rows),
    )


def _row(row: PublishedTable, told: PublishedFile) -> PublishedRow:
    identity = CellIdentity(
        substrate=row.substrate,
        variant=row.variant,
        tier=row.tier,
        tier_digest="",
        actions=row.actions,
        mode=row.mode,
        concurrency=0,
        arrival="",
        think="0s",
        acquire="create",
        cache="unknown",
        cpu_milli=round(1000 * told.cpus),
        memory_mib=told.memory_mib,
        network="",
        image="",
        environment=told.source,
        substrate_version="",
    )
    return PublishedRow(identity, round(row.trajectory_s * 1e9), row.label, row.note)
