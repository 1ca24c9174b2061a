"""The recordings that a person has on this machine, told from the first and the last bytes of each file."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import msgspec

from costmodel import Cell as CellEvent
from costmodel import Clock, Event, Header, RunFinished, SourceError, TrialEnded, TrialStarted, events, framing
from taxtui import folders
from taxtui.errors import UsageError
from taxtui.live.state import RunState
from taxtui.plan.scenario import bundled
from taxtui.terminal_text import clean

State = Literal[
    "complete", "incomplete", "running", "damaged", "newer version", "not a recording", "empty", "unreadable"
]
HOPELESS: Final = frozenset({"newer version", "not a recording", "empty", "unreadable"})
"""States in which nothing of a recording can be shown."""
READABLE: Final = frozenset({"complete", "incomplete", "running"})
"""States in which a recording can be read to the end of what there is."""

SUFFIX: Final = ".msgpack"
SHIPPED: Final = tuple(
    f"../recordings/{name}.msgpack"
    for name in ("run", "gvisor", "layers", "short", "small", "aa", "drift", "kubernetes", "kubernetes2")
)
"""What came with taxtui, the one that is looked at where there is none of one's own first."""
END_BYTES: Final = 64 << 10  # read at each end of a file
LATEST_FRAMES: Final = 4  # of the end, which name the latest instant
FRESH_S: Final = 5.0
"""A run writes at least once a second: what was written to more recently than this and has no end is still running."""


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file, as far as its ends tell. Texts are safe for a screen."""

    path: Path
    state: State
    detail: str = ""  # what is wrong with it; "" where nothing is
    size_bytes: int = 0
    modified_ns: int = 0  # Unix
    shipped: bool = False  # came with taxtui
    run_id: str = ""
    scenario: str = ""
    started_unix_ns: int = 0  # 0: not known
    elapsed_ns: int = 0  # up to the latest instant that the end of the file names; 0: that does not tell
    substrates: tuple[str, ...] = ()  # labels, in the order of the plan
    workloads: tuple[str, ...] = ()  # T0×10 …
    modes: tuple[str, ...] = ()
    cells: int = 0
    trials: int | None = None  # planned
    stand_in: bool = False  # measured on an imitation of the provider
    imported: bool = False  # from the logs of another tool
    outcome: str = ""  # of the run; "" where its end is missing
    counts: Mapping[str, int] = {}  # trials by outcome; {} where the end is missing
    succeeded: bool = False  # a trial is known to have: there is something to project
    software: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """The file's name without the suffix that all have."""
        return clean(self.path.name.removesuffix(SUFFIX))

    @property
    def fate(self) -> str:
        """What became of the run, in a word or two; "" where that is not known. Whether its file is whole is apart."""
        unknown = {"running": "running", "incomplete": "broken off"}
        return self.outcome or unknown.get(self.state, "")

    @property
    def done(self) -> int | None:
        """Trials that ended; None where the end of the recording, which counts them, is missing."""
        return sum(self.counts.values()) if self.outcome else None

    @property
    def words(self) -> str:
        """What a filter looks for."""
        facts = [*self.substrates, *self.workloads, *self.modes, "shipped" if self.shipped else ""]
        return " ".join([self.name, self.state, self.fate, self.scenario, self.run_id, *facts])

    @property
    def stamp(self) -> tuple[int, int]:
        """Differs once the file has been written to."""
        return self.size_bytes, self.modified_ns

    @property
    def when_ns(self) -> int:
        """Unix time of the start where it is known, else of the last write."""
        return self.started_unix_ns or self.modified_ns


class Listing(NamedTuple):
    """All entries, and what kept others from being listed."""

    entries: tuple[CatalogueEntry, ...] = ()
    folder: Path | None = None
    problem: str = ""


def names(paths: Iterable[Path]) -> str:
    """The files' names, safe for a screen: ``run.msgpack, gvisor.msgpack``."""
    return ", ".join(clean(path.name) for path in paths)


def shown(path: Path) -> str:
    """A path as short as it can be given here: relative to the current folder where it lies below it."""
    full = Path(os.path.abspath(path))  # noqa: PTH100  # Path.resolve() would follow links
    with contextlib.suppress(ValueError, OSError):  # OSError: the current folder was deleted
        return clean(str(full.relative_to(Path.cwd())))
    return clean(str(full))


def beside(path: Path, ending: str) -> Path:
    """The first free name next to a recording for what is made of it: ``run.html``, ``run.2.html``.

    Of one that came with taxtui it is where runs are written, if such a folder can be made.
    """
    folder = path.parent
    if os.path.realpath(path) in map(os.path.realpath, _shipped()):
        with contextlib.suppress(UsageError):
            folder = folders.recordings()
    start, _, suffix = f"{path.name.removesuffix(SUFFIX)}{ending}".rpartition(".")
    names = (folder / f"{start}{number}.{suffix}" for number in ("", *(f".{n}" for n in range(2, 1000))))
    return next(name for name in names if not name.exists())


def same(one: Path, other: Path) -> bool:
    """Whether both lead to one file, through whatever links."""
    return os.path.realpath(one) == os.path.realpath(other)


def command(path: Path) -> str:
    """The command line that replays a recording."""
    return shlex.join(["taxtui", "replay", shown(path)])


def newest(*, succeeded: bool = False) -> Path | None:
    """One's own recording that was written to last, judged by its first frame alone; else the shipped reference.

    Where a trial must have ``succeeded``, as every projection needs, its ends are looked at; without any such
    recording it is the newest all the same, which says what is amiss.
    """
    own, shipped = by_age()
    fitting = filter(_has_success, [*own, *shipped]) if succeeded else iter(())
    return next(fitting, None) or next((path for path in own if _has_header(path)), next(iter(shipped), None))


def by_age() -> tuple[list[Path], list[Path]]:
    """One's own recordings, the one that was written to last first, and those that came with taxtui."""
    dated = []
    shipped = {os.path.realpath(path): path for path in _shipped()}  # in a checkout they lie among one's own
    with contextlib.suppress(OSError, UsageError):
        for path in recordings(folders.recordings()):
            with contextlib.suppress(OSError):  # it has just vanished
                status = path.stat()
                own = os.path.realpath(path) not in shipped
                if own and stat.S_ISREG(status.st_mode):  # to open a pipe would wait for its writer
                    dated.append((status.st_mtime_ns, path))
    return [path for _, path in sorted(dated, reverse=True)], list(shipped.values())


def others(paths: Sequence[Path]) -> list[str]:
    """The names of the other recordings that there are, one's own before those that came with taxtui."""
    own, shipped = by_age()
    told = {os.path.realpath(path) for path in paths}
    found = [path for path in [*own, *shipped] if os.path.realpath(path) not in told]
    return [clean(path.name.removesuffix(SUFFIX)) for path in found]


def recordings(folder: Path) -> list[Path]:
    """Every file there that ``taxtui run`` may have written. Raises ``OSError``."""
    return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)


def scan(feed: Path | None = None, *, running: bool = False, known: Iterable[CatalogueEntry] = ()) -> Listing:
    """The recordings where runs are written, newest first, then others: what Live shows (``feed``), what is shipped.

    ``running`` says that what Live shows is still being written. A file that is as it was in ``known`` is not read.
    """
    folder, problem = None, ""
    found: list[Path] = []
    try:
        folder = folders.recordings()
        found = recordings(folder)
    except UsageError as error:
        problem = clean(str(error))
    except OSError as error:
        problem = f"cannot list {clean(str(folder))}: {error.strerror}"
    shipped = {os.path.realpath(path): path for path in _shipped()}
    live = os.path.realpath(feed) if feed else None
    unchanged = {(entry.path, *entry.stamp): entry for entry in known if entry.state != "running"}
    entries: dict[str, CatalogueEntry] = {}
    for path in [*found, *([feed] if feed else []), *shipped.values()]:
        real = os.path.realpath(path)
        if real not in entries:
            growing = running and real == live
            entry = None if growing else unchanged.get((path, *stamp(path)))
            entry = entry or inspect(path, shipped=real in shipped, running=growing)
            if entry is not None:
                entries[real] = entry
    order = sorted(entries.values(), key=lambda entry: (entry.path.parent != folder, -entry.when_ns, entry.name))
    return Listing(tuple(order), folder, problem)


def listed(folder: Path | None) -> tuple[tuple[CatalogueEntry, ...], str]:
    """Return the recordings of a folder, the newest first, and why they cannot be listed; None: as ``scan``."""
    if folder is None:
        listing = scan()
        return listing.entries, listing.problem
    try:
        paths = recordings(folder)
    except OSError as error:
        return (), f"cannot list {clean(str(folder))}: {error.strerror}"
    entries = [entry for path in paths if (entry := inspect(path)) is not None]
    return tuple(sorted(entries, key=lambda entry: (-entry.when_ns, entry.name))), ""


def inspect(path: Path, *, shipped: bool = False, running: bool = False) -> CatalogueEntry | None:
    """What the ends of a file say, whatever its length; None where there is no file, or no ordinary one.

    ``running`` says that its run is known to go on.
    """
    facts: dict[str, Any] = {"path": path, "shipped": shipped}
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return None  # to open a pipe would wait for its writer
        facts |= {"size_bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        with path.open("rb") as file:
            head = _head(file)
            tail_start = max(0, file.seek(0, os.SEEK_END) - END_BYTES)
            file.seek(tail_start)
            tail = file.read(END_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        return CatalogueEntry(state="unreadable", detail=error.strerror or str(error), **facts)
    fresh = running or abs(time.time() - status.st_mtime_ns / 1e9) < FRESH_S
    return _told(facts, head, tail, tail_start, fresh=fresh)


def stamp(path: Path) -> tuple[int, int]:
    """As ``Entry.stamp``; one that no entry has where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def _head(file: BinaryIO) -> bytes:
    """Enough of the file to hold its first frame, which may be as large as a frame can be."""
    head = file.read(END_BYTES)
    with contextlib.suppress(SourceError):
        if len(head) == END_BYTES and framing.payload_at(head, 0, 0) is None:
            head += file.read(framing.PREFIX.size + framing.MAX_LENGTH)
    return head


def _told(facts: dict[str, Any], head: bytes, tail: bytes, tail_start: int, *, fresh: bool) -> CatalogueEntry:
    header = _header(head)
    if header is None:
        state: State = "empty" if not head else "not a recording"
        return CatalogueEntry(state="running" if fresh and not head else state, **facts)
    if header.version > events.FORMAT_VERSION:
        detail = (
            f"format version {header.version}, this taxtui reads up to {events.FORMAT_VERSION}; install a newer taxtui"
        )
        return CatalogueEntry(state="newer version", detail=detail, run_id=clean(header.run_id), **facts)
    run, state, detail = RunState(), "incomplete", ""
    last: Event | None = None
    succeeded = anchored = False
    try:
        for event in _opening(head):
            run.apply(event)
        for event in _latest(tail, tail_start):
            if isinstance(event, TrialEnded) and event.outcome == events.OK:
                trial = run.open.get(event.trial)
                succeeded |= trial is None or not trial.warm_up
            anchored |= isinstance(event, Clock)
            if not isinstance(event, Header):
                run.apply(event)
            last = event
    except SourceError as error:
        state, detail = "damaged", clean(error.problem)
    else:
        state = "complete" if isinstance(last, RunFinished) else "running" if fresh else "incomplete"
    cells = list(run.cells.values())
    known = [cell.planned for cell in cells if cell.planned is not None]
    return CatalogueEntry(
        state=state,
        detail=detail,
        run_id=run.run_id,
        scenario=run.name,
        started_unix_ns=run.started_unix_ns,
        # every repetition counts from a clock of its own, and that of the last may stand before what was read
        elapsed_ns=run.elapsed_ns if anchored or run.repetitions == 1 else 0,
        substrates=tuple(run.by_substrate()),
        workloads=tuple(dict.fromkeys(cell.workload for cell in cells)),
        modes=tuple(dict.fromkeys(cell.mode for cell in cells)),
        cells=len(cells),
        trials=sum(known) if len(known) == len(cells) else None,
        stand_in=any(cell.provenance == "stand_in" for cell in cells),
        imported=any(cell.provenance == "imported" for cell in cells),
        outcome=run.outcome or "",
        counts={clean(key): n for key, n in last.counts.items()} if isinstance(last, RunFinished) else {},
        succeeded=succeeded or (isinstance(last, RunFinished) and last.counts.get(events.OK, 0) > 0),
        software=run.software,
        **facts,
    )


def _header(head: bytes) -> Header | None:
    """The header, which is alone in the first frame; None where that is something else, or not all there."""
    with contextlib.suppress(SourceError):
        payload = framing.payload_at(head, 0, 0)
        first = next(iter(framing.decode(payload, 0).events), None) if payload else None
        if isinstance(first, Header) and first.magic == events.MAGIC:
            return first
    return None


def _has_header(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            header = _header(_head(file))
    except OSError:
        return False
    return header is not None and header.version <= events.FORMAT_VERSION


def _has_success(path: Path) -> bool:
    entry = inspect(path)
    return entry is not None and entry.succeeded


def _opening(head: bytes) -> Iterator[Event]:
    """What describes the run, up to its first trial. Raises ``SourceError``."""
    start = 0
    while (payload := framing.payload_at(head, start, start)) is not None:
        for event in framing.decode(payload, start).events:
            if isinstance(event, Header | Clock | CellEvent):
                yield event
            elif isinstance(event, TrialStarted):
                return
        start += framing.PREFIX.size + len(payload)


def _latest(tail: bytes, tail_start: int) -> Iterator[Event]:
    """The events of the last frames; a torn one at the very end is left out, as reading the file would.

    Raises:
        SourceError: something stands between or behind frames that is none, or in one that is no event.
    """
    found: list[tuple[int, bytes]] = []  # where each begins in the file, its payload
    end: int | None = 0 if tail_start == 0 else None  # of the frame before; not known where the tail begins
    while (start := framing.next_valid(tail, end or 0)) is not None:
        if end is not None and start != end:
            framing.payload_at(tail, end, tail_start + end)  # says what is wrong, where it is no torn frame
            raise framing.damaged(tail_start + end, "intact frames follow")
        payload = framing.payload_at(tail, start, tail_start + start)
        assert payload is not None  # next_valid() has seen it
        found.append((tail_start + start, payload))
        end = start + framing.PREFIX.size + len(payload)
    if end is not None:
        framing.payload_at(tail, end, tail_start + end)
    latest = found[-LATEST_FRAMES:]
    chain = framing.Chain(within=bool(latest) and latest[0][0] > 0)
    for offset, payload in latest:
        batch = framing.decode(payload, offset)
        chain.add(batch, payload, offset)
        yield from batch.events


def _shipped() -> Iterator[Path]:
    for name in SHIPPED:
        if (path := bundled(name)) is not None:
            yield path
