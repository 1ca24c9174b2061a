"""Results of PrimeIntellect's runtime benchmark: ``bench/results/*.json`` of verifiers, durations sorted by quantity.

Set-up, generation and scoring of a rollout cannot be joined, and are paired by rank. Sums, means and percentiles of
each quantity stay exact; the spread of their sum is the largest possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

from costmodel import events
from taxtui.importers.files import Unreadable, document
from taxtui.importers.protocol import Reader, Skipped
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import Failure, ImportedTrial, Quantity
from taxtui.importers.values import MILLISECOND_NS, at, duration_ns, integer, items, text

COLUMNS: Final = ("setup_durations", "gen_durations", "scoring_durations")
FAILURE: Final = Failure("RolloutError", events.ACTION)
MOST_IN_FLIGHT: Final = 1_000_000


class VerifiersBenchReader(Reader):
    """A result a file."""

    name: ClassVar[str] = "verifiers-bench"
    file_names: ClassVar[tuple[str, ...]] = ("*.json",)

    def recognises(self, path: Path, head: bytes) -> bool:
        return b'"setup_durations"' in head and b'"runtime"' in head

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        """Yield a trial per rollout: as many failed as the errors, first rollouts without durations."""
        result = document(path)
        columns = [items(result, key) for key in COLUMNS]
        if not columns[0] or not all(len(column) == len(columns[0]) for column in columns):
            raise Unreadable("no result of verifiers' benchmark, or columns of different lengths")
        rollouts = integer(at(result, "rollouts"), MOST_IN_FLIGHT) or len(columns[0])
        family = path.parent.name if path.parent.name in ("agentic", "single_turn") else ""
        identity: dict[str, Any] = {
            "dated": False,
            "resolution_ns": MILLISECOND_NS,
            "substrate": text(at(result, "runtime")),
            "workload": ("verifiers-bench", family),
            "concurrency": integer(at(result, "max_concurrent"), MOST_IN_FLIGHT) or rollouts,
            "arrival": "burst",
        }
        missing = max(0, rollouts - len(columns[0]))
        errors = integer(at(result, "errors"), MOST_IN_FLIGHT) or 0
        rows = list(enumerate(zip(*columns, strict=True), 1))
        Random(0).shuffle(rows)  # sorted trials would look dependent
        for number, row in rows:
            setup_ns, generation_ns, scoring_ns = map(duration_ns, row)
            if setup_ns is None or generation_ns is None or scoring_ns is None:
                yield Skipped(f"rollout {number}", "a duration is invalid")
                continue
            timeline = _timeline()
            timeline.append(events.CREATE, setup_ns)
            timeline.append(events.ACTION, generation_ns)
            timeline.append(events.VERIFY, scoring_ns)
            failed = number <= errors - missing  # a rollout that is not scored has 0 s
            if failed:
                timeline.lacks(Quantity.HELD, "the rollouts that failed are taken to be the shortest", partly=True)
            yield ImportedTrial(**timeline.times(), failure=FAILURE if failed else None, **identity)
        for _ in range(min(errors, missing)):
            timeline = _timeline()
            timeline.lacks(Quantity.HELD, "a failed rollout has no time")
            yield ImportedTrial(**timeline.times(), failure=FAILURE, **identity)
        if missing > errors:
            yield Skipped("", f"{missing - errors:,} rollouts have neither durations nor an error")


def _timeline() -> Timeline:
    timeline = Timeline(0)
    timeline.lacks(Quantity.INSTANTS, "only durations are known")
    timeline.lacks(Quantity.READY, "set-up holds boot, ready and the harness's installation")
    timeline.lacks(Quantity.RUN, "no command is timed")
    timeline.lacks(Quantity.ACTIONS, "only the total time of generation is known")
    timeline.lacks(Quantity.THINK, "only the total time of generation is known")
    timeline.lacks(Quantity.HELD, "set-up, generation and scoring are sorted apart, and paired by rank", partly=True)
    return timeline
