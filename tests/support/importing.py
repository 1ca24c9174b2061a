"""Sources of every format, and what an import makes of them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from costmodel.recording.events import Actions, Cell, Event, PhaseEnded, TrialEnded, TrialStarted
from costmodel.recording.follower import read_events
from taxtui.importers import registry
from taxtui.importers.importing import ImportResult, import_files
from taxtui.importers.protocol import ReaderOptions

SAMPLES: Final = Path(__file__).parent / "import_samples"
FORMATS: Final = tuple(sorted(path.name for path in SAMPLES.iterdir()))
"""Those that there are samples of: a folder each, named as the format."""


def imported(name: str, source: Path, out: Path, **options: Any) -> tuple[ImportResult, list[Event]]:
    """What became of an import, and the events of the recording."""
    asked = ReaderOptions(options.pop("span_phases", {}))
    result = import_files(registry.load(name), [source], out, asked, **options)
    return result, events_of(out)


def events_of(path: Path) -> list[Event]:
    """All events of a recording that is whole."""
    events: list[Event] = []
    assert read_events(path, events.append).complete
    return events


def of(events: list[Event], kind: type[Any], trial: int | None = None) -> list[Any]:
    """The events of a kind, of one trial or of all."""
    return [event for event in events if isinstance(event, kind) and (trial is None or event.trial == trial)]


def starts(events: list[Event]) -> list[TrialStarted]:
    """One a trial."""
    return of(events, TrialStarted)


def phases_s(events: list[Event], trial: int) -> dict[str, float]:
    """Seconds by phase."""
    return {event.phase: event.duration_ns / 1e9 for event in of(events, PhaseEnded, trial)}


def actions_s(events: list[Event], trial: int, column: str = "duration_ns") -> list[float]:
    """Seconds of one column of the actions; empty where all are 0."""
    return [value / 1e9 for event in of(events, Actions, trial) for value in getattr(event, column)]


def held_s(events: list[Event], trial: int) -> float:
    """From the first request to the last action's end or the failure."""
    [start], [end] = of(events, TrialStarted, trial), of(events, TrialEnded, trial)
    return float((end.end_ns - start.start_ns) / 1e9)


def cell_of(events: list[Event], trial: int) -> Cell:
    """The cell of a trial."""
    [start] = of(events, TrialStarted, trial)
    [cell] = [event for event in events if isinstance(event, Cell) and event.id == start.cell]
    return cell


def sample_files(name: str) -> Iterator[tuple[Path, bytes]]:
    """Paths below the sample's folder, and contents."""
    for path in sorted((SAMPLES / name).rglob("*")):
        if path.is_file():
            yield path.relative_to(SAMPLES / name), path.read_bytes()


def unpacked(data: bytes) -> dict[str, bytes] | None:
    """The members of an archive; None where it is none."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except NotImplementedError:
        return {}  # packed in a way that only its reader knows


def packed(members: dict[str, bytes]) -> bytes:
    """An archive of members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()
