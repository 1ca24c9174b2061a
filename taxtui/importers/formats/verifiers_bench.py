"""Results of PrimeIntellect's runtime benchmark: ``bench/results/*.json`` of verifiers, durations sorted by quantity.

Set-up, generation and scoring of one rollout cannot be joined: they are paired by rank. Sums, means and the percentiles
of each quantity stay exact; the spread of their sum is the largest possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import ClassVar, Final

from costmodel import events
from taxtui.importers.files import document, walk
from taxtui.importers.protocol import (
    ACTIONS,
    HELD,
    INSTANTS,
    READY,
    RUN,
    THINK,
    Asked,
    Failure,
    ImportedTrial,
    Skipped,
    Unreadable,
)
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import MILLISECOND_NS, at, duration_ns, integer, items, text

SETUP: Final = "setup_durations"
GENERATION: Final = "gen_durations"
SCORING: Final = "scoring_durations"
MOST_IN_FLIGHT: Final = 1_000_000


class VerifiersBenchReader:
    """One result a file."""

    name: ClassVar[str] = "verifiers-bench"
    summary: ClassVar[str] = "results of the runtime benchmark of verifiers: bench/results/*.json"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every JSON file below a folder."""
        return walk(folder, lambda name: name.endswith(".json"))

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the file has the columns of a result."""
        return b'"setup_durations"' in head and b'"runtime"' in head

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
        """A trial per rollout, and one without a time per error. Raises ``Unreadable`` where it is no such file."""
        told = document(path)
        columns = [items(told, key) for key in (SETUP, GENERATION, SCORING)]
        if not columns[0] or not all(len(column) == len(columns[0]) for column in columns):
            raise Unreadable("it is no result of verifiers' benchmark, or its columns differ in length")
        rollouts = integer(at(told, "rollouts"), MOST_IN_FLIGHT) or len(columns[0])
        family = path.parent.name if path.parent.name in ("agentic", "single_turn") else ""

        def trial(timeline: Timeline, failure: Failure | None = None) -> ImportedTrial:
            return ImportedTrial(
                **timeline.times(),
                dated=False,
                failure=failure,
                resolution_ns=MILLISECOND_NS,
                substrate=text(at(told, "runtime")),
                workload=("verifiers-bench", family),
                concurrency=integer(at(told, "max_concurrent"), MOST_IN_FLIGHT) or rollouts,
                arrival="burst",
            )

        rows = list(enumerate(zip(*columns, strict=True), 1))
        Random(0).shuffle(rows)  # sorted neighbours would look like trials that depend on each other
        for number, durations in rows:
            timeline = _timeline()
            known = [duration_ns(value) for value in durations]
            if any(ns is None for ns in known):
                yield Skipped(f"rollout {number}", "one of its durations is no duration")
                continue
            setup_ns, generation_ns, scoring_ns = (ns or 0 for ns in known)
            timeline.next_phase(events.CREATE, setup_ns)
            timeline.next_action(generation_ns)
            timeline.next_phase(events.VERIFY, scoring_ns)
            yield trial(timeline)
        missing = max(0, rollouts - len(columns[0]))
        for _ in range(min(integer(at(told, "errors"), MOST_IN_FLIGHT) or 0, missing)):
            timeline = _timeline()
            timeline.lacks(HELD, "a failed rollout has no time")
            yield trial(timeline, Failure("RolloutError", events.ACTION))


def _timeline() -> Timeline:
    timeline = Timeline(0)
    timeline.lacks(INSTANTS, "only durations are known")
    timeline.lacks(READY, "set-up holds boot, ready and the harness's installation")
    timeline.lacks(RUN, "no command is timed")
    timeline.lacks(ACTIONS, "generation is one piece")
    timeline.lacks(THINK, "generation is one piece")
    timeline.lacks(HELD, "set-up, generation and scoring are sorted apart, and paired by rank", partly=True)
    return timeline
