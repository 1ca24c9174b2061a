"""Targets of ``make fuzz`` with a file: logs of other tools, shipped documents, projected recordings."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import costmodel
from costmodel.errors import CostModelError
from costmodel.recording.reader import read_recording
from taxtui.errors import RecordingError, TaxtuiError
from taxtui.importers import registry
from taxtui.importers.importing import import_files
from taxtui.plan import scenario
from tests.support import importing
from tests.support.fuzz import hostile, mangled
from tests.support.fuzz.fuzz_targets import Target, spoilt

_SPAN: Final = {"start": 1000.0, "end": 1001.5}
_SOURCES: Final = {
    **{f"{name}/{path}": data for name in importing.FORMATS for path, data in importing.sample_files(name)},
    **{
        f"{n}/{file}": (importing.LOGS / file).read_bytes()
        for n, files in importing.LOG_FILES.items()
        for file in files
    },
    "swe-agent/x.traj": json.dumps(importing.swe_agent_trajectory(0.5, 1.5)).encode(),
    "verifiers/results.jsonl": json.dumps(
        importing.verifiers_result(start_time=999.0, setup=_SPAN, scoring=_SPAN, env={"spans": [_SPAN]})
    ).encode(),
    "inspect/log.json": json.dumps(
        importing.inspect_log([importing.inspect_event(kind, 1, 2) for kind in ("model", "tool", "sandbox")])
    ).encode(),
}
"""Format and file name → content."""
_ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 10**400, 1e308, -1e308, 1e-320, math.nan, math.inf, 1795297016.1, 4e9),
    *("", "x", "NaN", "\x1b[31m", "\ud800", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59", "2026-11-22T03:13:10"),
    *([], {}, [None], [[[]]], [{}]),
)


def _log(source: Random) -> bytes:
    name = source.choice(sorted(_SOURCES))
    data = _SOURCES[name]
    if source.random() < 0.7 and not name.endswith((".eval", ".csv")):
        lines = data.splitlines() if name.endswith(".jsonl") else [data]
        data = b"\n".join(json.dumps(_damaged(json.loads(line), source)).encode() for line in lines)
    else:
        data = spoilt(data, source)
    if source.random() < 0.1:
        data = data[: source.randrange(len(data) + 1)]
    return name.encode() + b"\n" + data


def _damaged(value: Any, source: Random) -> Any:
    """The value with up to four parts missing, replaced or exchanged."""
    for _ in range(source.randint(0, 4)):
        places = hostile.places(value)
        if not places:
            break
        holder, key = source.choice(places)
        damage = source.random()
        if damage < 0.3:
            del holder[key]
        elif damage < 0.8:
            holder[key] = copy.deepcopy(source.choice(_ODD))
        else:
            exchanged = source.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            holder[key], holder[exchanged] = holder[exchanged], holder[key]
    return value


def _import(data: bytes) -> str:
    """A recording that can be read, or a refusal in one line."""
    where, _, content = data.partition(b"\n")
    name, _, path = where.decode().partition("/")
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, path), Path(folder, "out.msgpack")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        try:
            result = import_files(registry.load(name), [file], out)
        except RecordingError as error:
            assert "\n" not in str(error), str(error)
            assert "unexpected" not in str(error), str(error)
            assert not out.exists()
            return "refused"
        assert not any("unexpected" in line for line in result.named), result.named
        read_recording(out)  # refuses negative durations, and clocks that do not add up
    return "taken"


def _published(path: Path) -> None:
    costmodel.project([costmodel.load(path)], costmodel.TrainingRun(trajectories=1000, workers=10))


_READERS: Final[dict[str, Callable[[Path], object]]] = {
    "scenario": lambda path: scenario.load(str(path)),
    "tier": lambda path: scenario.load_tier(str(path)),
    "published": _published,
    "facts": costmodel.load,
    "prices": costmodel.load_prices,
    "profile": costmodel.load_profile,
}


def _shipped(source: Random) -> bytes:
    kind = source.choice(sorted(_READERS))
    return f"{kind}\n{mangled.document(kind, source)}".encode("utf-8", "surrogatepass")


def _document(data: bytes) -> str:
    """A document is read, or refused in one line."""
    kind, _, text = data.partition(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "document.toml")
        path.write_bytes(text)
        try:
            _READERS[kind.decode()](path)
        except (TaxtuiError, CostModelError) as error:
            assert "\n" not in str(error), str(error)
            return "refused"
    return "taken"


def _projected(data: bytes) -> str:
    """A recording is read and projected, or refused in one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "recording.msgpack")
        path.write_bytes(data)
        try:
            costmodel.project([costmodel.load(path)], costmodel.TrainingRun(trajectories=100, workers=10))
        except CostModelError as error:
            assert "\n" not in str(error), str(error)
            return "refused"
    return "taken"


WITH_FILES: Final = {
    "importers": Target(_log, _import, 10),
    "documents": Target(_shipped, _document, 3),
    "projections": Target(hostile.recording, _projected, 1),
}
"""Targets with a file, slower than targets in memory."""
