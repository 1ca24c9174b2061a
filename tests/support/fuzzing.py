"""Tries mangled files, each from a seed of its own: ``python -m tests.support.fuzzing SECONDS [FIRST_SEED]``.

What must hold: every command's reader takes a file or says one line of a documented error, and both decoders of
recordings take or refuse the same bytes at the same offset. A failure is repeated by its seed.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import costmodel
from costmodel import wire
from costmodel.errors import CostModelError
from taxtui.errors import RecordingError, TaxtuiError
from taxtui.plan import scenario
from taxtui.recording import reader
from tests.support import mangled


def _published(path: Path) -> None:
    costmodel.project([costmodel.read(path)], costmodel.Demand(trajectories=1000, workers=10))


READERS: Final[dict[str, Callable[[Path], object]]] = {
    "scenario": lambda path: scenario.load(str(path)),
    "tier": lambda path: scenario.load_tier(str(path)),
    "published": _published,
    "facts": costmodel.read,
    "prices": costmodel.load_prices,
    "profile": costmodel.load_profile,
}


def try_document(seed: int, folder: Path) -> str:
    """What came of a mangled document: its kind, and "taken" or "refused". Raises whatever must not be."""
    source = random.Random(seed)
    kind = source.choice(sorted(READERS))
    path = folder / "document.toml"
    path.write_text(mangled.document(kind, source), encoding="utf-8")
    try:
        READERS[kind](path)
    except (TaxtuiError, CostModelError) as error:
        assert "\n" not in str(error), f"{kind} {seed}: {error}"
        return f"{kind} refused"
    return f"{kind} taken"


def try_recording(seed: int, folder: Path) -> str:
    """What came of a mangled recording, to both decoders. Raises whatever must not be."""
    path = folder / "recording.msgpack"
    path.write_bytes(mangled.recording(random.Random(seed)))
    told, also = _by_taxtui(path), _by_costmodel(path)
    assert told == also, f"recording {seed}: {told} is not {also}"
    if isinstance(told, int):
        return "recording refused"
    try:
        costmodel.project([costmodel.read(path)], costmodel.Demand(trajectories=100, workers=10))
    except CostModelError as error:
        assert "\n" not in str(error), f"recording {seed}: {error}"
        return "recording taken, and not projected"
    return "recording taken"


def _by_taxtui(path: Path) -> tuple[int, int] | int | None:
    try:
        summary = reader.read(path, lambda event: None)
    except RecordingError as error:
        return error.offset
    return summary.events, summary.skipped


def _by_costmodel(path: Path) -> tuple[int, int] | int | None:
    found = wire.Frames(path)
    try:
        events = sum(map(len, found))
    except costmodel.SourceError as error:
        return error.offset
    return events, found.skipped


def main(seconds: float, seed: int) -> None:
    """Print counts, after the seed of what failed."""
    counts: Counter[str] = Counter()
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            for attempt in (try_document, try_recording):
                try:
                    counts[attempt(seed, Path(folder))] += 1
                except Exception as error:
                    counts["FAILED"] += 1
                    print(f"{attempt.__name__} {seed}: {type(error).__name__}: {error}")
            seed += 1
    print(f"{sum(counts.values())} files: {dict(sorted(counts.items()))}")
    sys.exit(1 if counts["FAILED"] else 0)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
