"""computesdk benchmark results: times to the first command, sequential, staggered or in a burst."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from costmodel import events
from taxtui.importers.files import Unreadable, document
from taxtui.importers.protocol import Reader, Skipped, trial_or_skipped
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import Failure, ImportedTrial, Quantity
from taxtui.importers.values import MILLISECOND_NS, at, duration_ns, integer, items, maps, number, text

MOST_IN_FLIGHT = 1_000_000


class ComputesdkReader(Reader):
    """Every iteration is a trial without actions: a cold start at the mode's concurrency."""

    name: ClassVar[str] = "computesdk"
    file_names: ClassVar[tuple[str, ...]] = ("*.json",)

    def recognises(self, path: Path, head: bytes) -> bool:
        return b'"results"' in head and b'"ttiMs"' in head and b'"provider"' in head

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        results = list(maps(document(path), "results"))
        if not any("iterations" in result or "rampProfile" in result for result in results):
            raise Unreadable("no result of computesdk")
        for number_, result in enumerate(results, 1):
            samples = items(result, "iterations") or items(result, "rampProfile")
            for index, sample in enumerate(samples, 1):
                yield trial_or_skipped(f"result {number_}, sample {index}", _trial, result, sample, len(samples))


def _trial(result: dict[str, Any], sample: object, samples: int) -> ImportedTrial:
    error = at(sample, "error")
    took_ns = duration_ns(at(sample, "ttiMs"), MILLISECOND_NS)
    if not error and not took_ns:
        raise Unreadable("neither a time nor an error")
    timeline = Timeline(0)
    timeline.lacks(Quantity.INSTANTS, "only durations are known")
    timeline.lacks(Quantity.READY, "ttiMs ends with the first command: create contains ready")
    timeline.lacks(Quantity.RUN, "no commands were run")
    timeline.lacks(Quantity.ACTIONS, "no commands were run")
    failure = Failure("CreateFailed", events.CREATE) if error else None
    if failure is None:
        timeline.append(events.CREATE, took_ns or 0)
    elif took_ns:
        timeline.ended(took_ns)
    else:
        timeline.lacks(Quantity.HELD, "a failed sample has no time")
    mode = text(result.get("mode"))
    concurrency, arrival = 1, "sequential"
    if mode.startswith(("burst", "concurrent", "stagger")):
        concurrency, arrival = integer(result.get("concurrency"), MOST_IN_FLIGHT) or samples, "burst"
    delay_ms = number(result.get("staggerDelayMs"))
    if mode.startswith("stagger") and delay_ms is not None and 0 < delay_ms < 1e9:
        arrival = f"staggered:{delay_ms:g}ms"
    return ImportedTrial(
        **timeline.times(),
        dated=False,
        failure=failure,
        substrate=text(result.get("provider")),
        concurrency=concurrency,
        arrival=arrival,
    )
