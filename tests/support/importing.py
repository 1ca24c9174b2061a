"""Sources of every format, and what an import makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from costmodel.recording.events import Actions, Cell, Event, PhaseEnded, TrialEnded, TrialStarted
from costmodel.recording.follower import read_events
from taxtui.importers import registry
from taxtui.importers.importing import ImportResult, import_files
from taxtui.importers.trial import ImportedTrial

SAMPLES: Final = Path(__file__).parent / "import_samples"
LOGS: Final = Path(__file__).parents[1] / "logs"
"""Files that the tools themselves wrote."""
FORMATS: Final = tuple(sorted(path.name for path in SAMPLES.iterdir()))
"""Formats with a folder of samples."""
LOG_FILES: Final = {
    "inspect": ("inspect-given.eval", "inspect-slept.eval"),
    "mini-swe-agent": ("given.traj.json", "slept.traj.json"),
    "verifiers": ("verifiers-given.jsonl", "verifiers-slept.jsonl"),
}
"""Formats with files in ``LOGS``."""


def imported(name: str, source: Path, out: Path, **options: Any) -> tuple[ImportResult, list[Event]]:
    """What became of an import, and the events of the recording."""
    reader = registry.load(name)
    if span_phases := options.pop("span_phases", None):
        reader.span_phases = span_phases
    result = import_files(reader, [source], out, **options)
    return result, events_of(out)


def one(name: str, path: Path) -> ImportedTrial:
    """The only trial of a file."""
    [trial] = registry.load(name).trials(path)
    assert isinstance(trial, ImportedTrial)
    return trial


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def episode(folder: Path, **changes: Any) -> Path:
    """An episode of verifiers whose trace is changed; ``runtime`` is its agent's."""
    told = json.loads((LOGS / "verifiers-given.jsonl").read_text())
    if runtime := changes.pop("runtime", None):
        told["traces"][0]["agent"]["runtime"] = runtime
    told["traces"][0] |= changes
    return written(folder / "traces.jsonl", told)


def events_of(path: Path) -> list[Event]:
    """All events of a recording that is whole."""
    events: list[Event] = []
    assert read_events(path, events.append).complete
    return events


def of(events: list[Event], kind: type[Any], trial: int | None = None) -> list[Any]:
    return [event for event in events if isinstance(event, kind) and (trial is None or event.trial == trial)]


def starts(events: list[Event]) -> list[TrialStarted]:
    return of(events, TrialStarted)


def phases_s(events: list[Event], trial: int) -> dict[str, float]:
    return {event.phase: event.duration_ns / 1e9 for event in of(events, PhaseEnded, trial)}


def actions_s(events: list[Event], trial: int, column: str = "duration_ns") -> list[float]:
    """Seconds of one column of the actions; empty where all are 0."""
    return [value / 1e9 for event in of(events, Actions, trial) for value in getattr(event, column)]


def held_s(events: list[Event], trial: int) -> float:
    """From the first request to the last action's end or the failure."""
    [start], [end] = of(events, TrialStarted, trial), of(events, TrialEnded, trial)
    return float((end.end_ns - start.start_ns) / 1e9)


def cell_of(events: list[Event], trial: int) -> Cell:
    [start] = of(events, TrialStarted, trial)
    [cell] = [event for event in events if isinstance(event, Cell) and event.id == start.cell]
    return cell


def sample_files(name: str) -> Iterator[tuple[Path, bytes]]:
    """Paths below the sample's folder, and contents."""
    for path in sorted((SAMPLES / name).rglob("*")):
        if path.is_file():
            yield path.relative_to(SAMPLES / name), path.read_bytes()


def swe_agent_trajectory(*took_s: float, **info: Any) -> dict[str, Any]:
    """A trajectory of SWE-agent with these times of actions."""
    state = json.dumps({"working_dir": "/testbed"})
    steps = [{"action": "ls", "observation": "o", "execution_time": seconds, "state": state} for seconds in took_s]
    config = {"env": {"deployment": {"type": "docker", "image": "i"}}, "problem_statement": {"id": "p"}}
    return {"trajectory": steps, "info": info, "replay_config": json.dumps(config)}


def inspect_log(events: list[dict[str, Any]], **sample: Any) -> dict[str, Any]:
    """A log of inspect_ai as JSON, with one sample."""
    sample = {"id": 1, "started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T00:01:00Z", **sample}
    evaluation = {"eval_id": "e", "task_id": "t", "task": "t"}
    return {"version": 2, "status": "error", "eval": evaluation, "samples": [{**sample, "events": events}]}


def inspect_event(kind: str, start_s: int, end_s: int, **more: object) -> dict[str, Any]:
    """An event of such a log, in seconds of the sample."""
    at = [f"2026-01-01T00:00:{second:02}+00:00" for second in (start_s, end_s)]
    return {"event": kind, "timestamp": at[0], "completed": at[1], **more}


def verifiers_result(**timing: object) -> dict[str, Any]:
    """A result of verifiers before version 1."""
    return {"example_id": 3, "task": "swe", "prompt": "p", "reward": 1.0, "timing": timing}


_SPAN: Final = {"start": 1000.0, "end": 1001.5}
_INSPECT_EVENTS: Final = [inspect_event(kind, 1, 2, cmd="c") for kind in ("model", "tool", "sandbox")]
SOURCES: Final = {
    **{f"{name}/{path}": data for name in FORMATS for path, data in sample_files(name)},
    **{f"{name}/{file}": (LOGS / file).read_bytes() for name, files in LOG_FILES.items() for file in files},
    "swe-agent/x.traj": json.dumps(swe_agent_trajectory(0.5, 1.5, exit_status="submitted")).encode(),
    "verifiers/results.jsonl": json.dumps(
        verifiers_result(start_time=999.0, setup=_SPAN, scoring=_SPAN, env={"spans": [_SPAN]})
    ).encode(),
    "inspect/log.json": json.dumps(inspect_log(_INSPECT_EVENTS)).encode(),
}
"""Format and file name → content."""
