"""Targets of ``make fuzz`` that go by way of a file: logs of other tools, shipped documents, projected recordings."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import costmodel
from costmodel.errors import CostModelError
from taxtui.errors import TaxtuiError
from taxtui.importers import registry
from taxtui.importers.files import Unreadable
from taxtui.importers.protocol import ImportedTrial, ReaderOptions
from taxtui.plan import scenario
from tests.support import importing
from tests.support.fuzz import mangled
from tests.support.fuzz.fuzz_targets import Target, spoilt

_SAMPLES: Final = {
    f"{name}/{path}": data
    for name in importing.FORMATS
    for path, data in importing.sample_files(name)
    if importing.unpacked(data) is None
}


_ODD: Final[tuple[Any, ...]] = (None, -1, 10**400, 1e308, "", "NaN", "9999-12-31T23:59:59", "\x1b[31m", [], {}, True)


def _log(source: Random) -> bytes:
    name = source.choice(sorted(_SAMPLES))
    data = _SAMPLES[name]
    if source.random() < 0.5 and name.endswith(".json"):
        value = json.loads(data)
        for _ in range(source.randint(1, 3)):
            holder, key = source.choice(mangled.places(value))
            holder[key] = source.choice(_ODD)
        data = json.dumps(value).encode()
    else:
        data = spoilt(data, source)
    return name.encode() + b"\n" + data


_importer: Final = functools.cache(registry.load)


def _reader(data: bytes) -> str:
    """Trials that make sense, or pieces that are left out; nothing else is raised."""
    where, _, content = data.partition(b"\n")
    name, _, path = where.decode().partition("/")
    made = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        try:
            for found in _importer(name).trials(file, ReaderOptions()):
                if isinstance(found, ImportedTrial):
                    assert found.end_ns >= found.start_ns, "it ends before it begins"
                    assert all(phase.duration_ns >= 0 for phase in found.phases)
                    assert all(min(action.duration_ns, action.think_ns, action.gap_ns) >= 0 for action in found.actions)
                    made += 1
        except Unreadable as error:
            assert "\n" not in str(error), str(error)
    return "taken" if made else "refused"


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
    """Every command's reader takes a document, or says one line."""
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
    "importers": Target(_log, _reader, 30),
    "documents": Target(_shipped, _document, 3),
    "projections": Target(mangled.recording, _projected, 1),
}
"""Slower than those in memory."""
