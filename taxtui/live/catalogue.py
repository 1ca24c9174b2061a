"""The user's recordings on this machine, described from both ends of each file."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import msgspec

from costmodel import SourceError, events, framing
from taxtui import folders
from taxtui.errors import UsageError
from taxtui.live.state import RunState
from taxtui.plan.scenario import bundled
from taxtui.terminal_text import clean

State = Literal[
    "complete", "incomplete", "running", "damaged", "newer version", "not a recording", "empty", "unreadable"
]
HOPELESS: Final = frozenset({"newer version", "not a recording", "empty", "unreadable"})
"""States of files without a readable event."""
READABLE: Final = frozenset({"complete", "incomplete", "running"})
"""States of recordings with only intact frames."""

SUFFIX: Final = ".msgpack"
SHIPPED: Final = tuple(
    f"../recordings/{name}.msgpack"
    for name in ("run", "gvisor", "layers", "harness", "short", "small", "aa", "drift", "kubernetes", "kubernetes2")
)
"""Recordings shipped with taxtui; the first is the default for users without recordings."""
END_BYTES: Final = 64 << 10
"""Bytes read at each end of a file."""
FRESH_S: Final = 5.0
"""A run writes at least once a second. A newer file without an end is still running."""


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file, described from both ends. Texts are safe for a screen."""

    path: Path
    state: State
    detail: str = ""  # the damage; "" where there is none
    size_bytes: int = 0
    modified_ns: int = 0  # Unix
    shipped: bool = False  # came with taxtui
    when_ns: int = 0  # Unix time of the start where known, else of the last write
    substrates: tuple[str, ...] = ()  # labels, in the order of the plan
    workloads: tuple[str, ...] = ()  # T0 x 10 …
    modes: tuple[str, ...] = ()
    cells: int = 0
    trials: int | None = None  # planned
    stand_in: bool = False  # measured on an imitation of the provider
    imported: bool = False  # from the logs of another tool
    outcome: str = ""  # of the run; "" without an end
    counts: Mapping[str, int] = {}  # trials by outcome; {} where the end is missing
    succeeded: bool = False  # a trial is known to have: there is something to project

    @property
    def name(self) -> str:
        """The file's name without the suffix."""
        return clean(self.path.name.removesuffix(SUFFIX))

    @property
    def fate(self) -> str:
        """The run's outcome in one or two words; "" where unknown."""
        unknown = {"running": "running", "incomplete": "broken off"}
        return self.outcome or unknown.get(self.state, "")

    @property
    def ended_trials(self) -> int | None:
        """Number of ended trials, without trials of a lost worker; None without the end of the recording."""
        return sum(self.counts.values()) - self.counts.get(events.INTERRUPTED, 0) if self.outcome else None

    @property
    def stamp(self) -> tuple[int, int]:
        """Differs once the file has been written to."""
        return self.size_bytes, self.modified_ns


class Listing(NamedTuple):
    """All entries, and the problem with the listing."""

    entries: tuple[CatalogueEntry, ...] = ()
    folder: Path | None = None
    problem: str = ""


def names(paths: Iterable[Path]) -> str:
    """The files' names, safe for a screen: ``run.msgpack, gvisor.msgpack``."""
    return ", ".join(clean(path.name) for path in paths)


def path_text(path: Path) -> str:
    """Return a path for a screen: relative to the current folder for files below the folder."""
    full = Path(os.path.abspath(path))  # noqa: PTH100  # Path.resolve() would follow links
    with contextlib.suppress(ValueError, OSError):  # OSError: the current folder was deleted
        return clean(str(full.relative_to(Path.cwd())))
    return clean(str(full))


def free_name(path: Path, ending: str) -> Path:
    """Return the first free name next to a recording: ``run.html``, ``run.2.html``.

    For a shipped recording the folder is the user's folder of recordings, where possible.
    """
    folder = path.parent
    if os.path.realpath(path) in map(os.path.realpath, _shipped()):
        with contextlib.suppress(UsageError):
            folder = folders.recordings()
    start, _, suffix = f"{path.name.removesuffix(SUFFIX)}{ending}".rpartition(".")
    names = (folder / f"{start}{number}.{suffix}" for number in ("", *(f".{n}" for n in range(2, 1000))))
    return next(name for name in names if not name.exists())


def same(first: Path, second: Path) -> bool:
    """Whether both paths lead to one file, also through links."""
    return os.path.realpath(first) == os.path.realpath(second)


def command(path: Path) -> str:
    """Return the command line for a replay."""
    return shlex.join(["taxtui", "replay", path_text(path)])


def readable() -> list[CatalogueEntry]:
    """Return the user's recordings with a header, latest write first, without the shipped recordings."""
    entries = [entry for entry in scan().entries if not entry.shipped and entry.state not in HOPELESS]
    return sorted(entries, key=lambda entry: -entry.modified_ns)


def newest(*, succeeded: bool = False) -> Path | None:
    """Return the user's last written recording with a header, else the shipped reference.

    ``succeeded``: prefer recordings with a successful trial, which every projection needs.
    """
    entries = readable()
    fitting = [entry.path for entry in entries if entry.succeeded or not succeeded]
    return next(iter([*fitting, *_shipped(), *(entry.path for entry in entries)]), None)


def scan(
    feed: Path | None = None,
    *,
    running: bool = False,
    previous: Iterable[CatalogueEntry] = (),
    folder: Path | None = None,
) -> Listing:
    """List the user's recordings, newest first, then the recording on Live (``feed``) and the shipped recordings.

    ``running``: the recording on Live is still being written. ``folder``: list this folder alone. Files with an
    unchanged entry in ``previous`` are not read.
    """
    problem = ""
    paths: list[Path] = []
    shipped = {} if folder else {os.path.realpath(path): path for path in _shipped()}
    try:
        folder = folder or folders.recordings()
        paths = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except UsageError as error:
        problem = clean(str(error))
    except OSError as error:
        problem = f"cannot list {clean(str(folder))}: {error.strerror}"
    live = os.path.realpath(feed) if feed else None
    unchanged = {(entry.path, *entry.stamp): entry for entry in previous if entry.state != "running"}
    entries: dict[str, CatalogueEntry] = {}
    for path in [*paths, *([feed] if feed else []), *shipped.values()]:
        real = os.path.realpath(path)
        if real not in entries:
            growing = running and real == live
            entry = None if growing else unchanged.get((path, *stamp(path)))
            entry = entry or inspect(path, shipped=real in shipped, running=growing)
            if entry is not None:
                entries[real] = entry
    order = sorted(entries.values(), key=lambda entry: (entry.path.parent != folder, -entry.when_ns, entry.name))
    return Listing(tuple(order), folder, problem)


def inspect(path: Path, *, shipped: bool = False, running: bool = False) -> CatalogueEntry | None:
    """Describe a file from both ends; None where there is no regular file.

    ``running``: the run continues.
    """
    facts: dict[str, Any] = {"path": path, "shipped": shipped}
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return None  # opening a pipe waits for the writer
        facts |= {"size_bytes": status.st_size, "modified_ns": status.st_mtime_ns, "when_ns": status.st_mtime_ns}
        with path.open("rb") as file:
            head = _head_of(file)
            tail_start = max(0, file.seek(0, os.SEEK_END) - END_BYTES)
            file.seek(tail_start)
            tail = file.read(END_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        return CatalogueEntry(state="unreadable", detail=error.strerror or str(error), **facts)
    fresh = running or abs(time.time() - status.st_mtime_ns / 1e9) < FRESH_S
    return _described(facts, head, tail, tail_start, fresh=fresh)


def stamp(path: Path) -> tuple[int, int]:
    """Return ``CatalogueEntry.stamp`` of a file; (-1, -1) where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def _described(facts: dict[str, Any], head: bytes, tail: bytes, tail_start: int, *, fresh: bool) -> CatalogueEntry:
    """Return the entry of a file. ``tail_start``: the tail's offset in the file; ``fresh``: it may still be written."""
    run, detail, succeeded = RunState(), "", False
    state: State = "incomplete"
    latest: list[events.Event] = []
    try:
        opening, _ = _frames(head)
        header = opening[0] if opening and isinstance(opening[0], events.Header) else None
        if header is None or header.magic != events.MAGIC:
            state = "running" if fresh and not head else "not a recording" if head else "empty"
            return CatalogueEntry(state=state, **facts)
        if header.version > events.FORMAT_VERSION:
            detail = f"format version {header.version}, this taxtui reads up to {events.FORMAT_VERSION}"
            detail += "; install a newer taxtui"
            return CatalogueEntry(state="newer version", detail=detail, **facts)
        for event in opening:
            if isinstance(event, events.TrialStarted):
                break
            run.apply(event)
        begins = next((start for start, _ in framing.intact_frames(tail)), None) if tail_start else 0
        latest, problem = ([], "") if begins is None else _frames(tail[begins:], tail_start + begins)
        for event in latest:
            if isinstance(event, events.TrialEnded) and event.trial not in run.open:  # started before the tail
                succeeded |= event.outcome == events.OK
            if not isinstance(event, events.Header):
                run.apply(event)
    except SourceError as error:
        problem = error.problem
    except ValueError as error:  # a contradiction: these frames are not checked as those of a whole file
        problem = str(error)
    last = latest[-1] if latest else None
    if problem:
        state, detail = "damaged", clean(problem)
    elif isinstance(last, events.RunFinished) or fresh:
        state = "complete" if isinstance(last, events.RunFinished) else "running"
    counts = last.counts if isinstance(last, events.RunFinished) else {}
    cells = list(run.cells.values())
    planned = [cell.planned for cell in cells if cell.planned is not None]
    return CatalogueEntry(
        state=state,
        detail=detail,
        substrates=tuple(run.by_substrate()),
        workloads=tuple(dict.fromkeys(cell.workload for cell in cells)),
        modes=tuple(dict.fromkeys(cell.mode for cell in cells)),
        cells=len(cells),
        trials=sum(planned) if len(planned) == len(cells) else None,
        stand_in=any(cell.provenance == "stand_in" for cell in cells),
        imported=any(cell.provenance == "imported" for cell in cells),
        outcome=run.outcome or "",
        counts={clean(key): n for key, n in counts.items()},
        succeeded=succeeded or counts.get(events.OK, 0) > 0 or any(cell.ok for cell in cells),
        **(facts | ({"when_ns": run.started_unix_ns} if run.started_unix_ns else {})),
    )


def _head_of(file: BinaryIO) -> bytes:
    """Return the beginning of a file with its whole first frame, however large."""
    head = file.read(END_BYTES)
    with contextlib.suppress(SourceError):
        if len(head) == END_BYTES and framing.payload_at(head, 0, 0) is None:
            head += file.read(framing.PREFIX.size + framing.MAX_LENGTH)
    return head


def _frames(data: bytes, start: int = 0) -> tuple[list[events.Event], str]:
    """Return the events of whole frames, and the problem after the last; a torn frame at the end is none.

    ``start``: the offset of the data in the file.
    """
    parser, chain = framing.FrameParser(start), framing.Chain(within=start > 0)
    result: list[events.Event] = []
    try:
        for offset, payload in parser.feed(data):
            batch = framing.decode(payload, offset)
            chain.add(batch, payload, offset)
            result += batch.events
        parser.finish()
    except SourceError as error:
        return result, error.problem
    return result, ""


def _shipped() -> Iterator[Path]:
    for name in SHIPPED:
        if (path := bundled(name)) is not None:
            yield path
