"""What the fold keeps of a trial in flight and of a cell, and how a trial's phases become a cell's durations."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from taxtui import events
from taxtui.histogram import LogHistogram

FACETS: Final = ("cold_start", "fresh_episode", "trajectory", "action", "dispatch", "run", "cleanup")
"""What the live histograms show, in the order in which a person pages through them."""

PARTS: Final = ("create", "ready", "preload", "setup", "run", "dispatch", "unsplit", "cleanup")
"""A successful trial's time by cause: the phases, with the actions split; ``unsplit`` where ``run`` is unknown."""


@dataclass(slots=True)
class OpenTrial:
    """What is known of a trial in flight; forgotten when it ends."""

    cell: int
    start_ns: int
    warm_up: bool
    phases: Counter[str] = field(default_factory=Counter)  # ns by phase
    actions: list[events.Actions] = field(default_factory=list)
    done: int = 0  # actions
    last_ns: int = 0
    doing: str = ""  # the last mark or phase that was seen

    def copy(self) -> OpenTrial:
        """A detached copy."""
        return dataclasses.replace(self, phases=self.phases.copy(), actions=self.actions.copy())


@dataclass(slots=True)
class CellState:
    """One cell: what was planned for it, what happened, and its histograms in ns."""

    id: int
    label: str  # substrate and variant: docker:runsc
    tier: str = "?"
    actions: int = 0
    mode: str = "?"
    concurrency: int = 1
    provenance: str = "measured"
    planned: int | None = None  # None: the header does not say
    planned_warm_ups: int = 0
    started: int = 0
    warm_ups: int = 0  # finished ones
    outcomes: Counter[str] = field(default_factory=Counter)
    facets: dict[str, LogHistogram] = field(default_factory=lambda: {name: LogHistogram() for name in FACETS})
    parts_ns: Counter[str] = field(default_factory=Counter)  # sums over successful trials, see PARTS
    occupied_ns: int = 0  # from the create request to the end of cleanup, over finished trials, warm-ups too

    @property
    def ok(self) -> int:
        """Successful trials."""
        return self.outcomes[events.OK]

    @property
    def finished(self) -> int:
        """Trials that ended, however they did, without warm-ups."""
        return self.outcomes.total()

    @property
    def failed(self) -> int:
        """Trials that ended badly; those that a person cancelled or an interrupt cut off are not failures."""
        return self.finished - sum(self.outcomes[o] for o in (events.OK, events.CANCELLED, events.INTERRUPTED))

    @property
    def trial_ns(self) -> float | None:
        """Mean time from one trial's create request to the end of its cleanup; None before the first has ended."""
        ended = self.finished + self.warm_ups
        return self.occupied_ns / ended if ended else None

    def mean_parts_ns(self) -> dict[str, float]:
        """Mean time by part of a successful trial; empty before there is one."""
        return {part: self.parts_ns[part] / self.ok for part in PARTS if self.parts_ns[part]} if self.ok else {}

    def copy(self) -> CellState:
        """A detached copy."""
        return dataclasses.replace(
            self,
            outcomes=self.outcomes.copy(),
            facets={name: histogram.copy() for name, histogram in self.facets.items()},
            parts_ns=self.parts_ns.copy(),
        )


def measure(cell: CellState, trial: OpenTrial, held_ns: int, queued_ns: int) -> None:
    """A successful trial's durations, as measurement.md defines them, into its cell."""
    phases = trial.phases
    cold_start_ns = phases[events.CREATE] + phases[events.RESET] + phases[events.READY]
    facets, parts = cell.facets, cell.parts_ns
    facets["cold_start"].add((cold_start_ns,))
    facets["fresh_episode"].add((cold_start_ns + phases[events.PRELOAD] + phases[events.SETUP],))
    think_ns = sum(sum(batch.think_ns) for batch in trial.actions)
    facets["trajectory"].add((held_ns - queued_ns - think_ns,))
    parts["create"] += phases[events.CREATE] + phases[events.RESET]
    for phase in (events.READY, events.PRELOAD, events.SETUP, events.CLEANUP):
        parts[phase] += phases[phase]
    for batch in trial.actions:
        facets["action"].add(batch.duration_ns)
        rows = len(batch.duration_ns)
        known = [
            (duration, run)
            for duration, run in zip(batch.duration_ns, events.column(batch.run_ns, rows), strict=False)
            if run != events.UNKNOWN
        ]
        run_ns = sum(run for _, run in known)
        split_ns = sum(duration for duration, _ in known)
        facets["run"].add(run for _, run in known)
        facets["dispatch"].add(duration - run for duration, run in known)
        parts["run"] += run_ns
        parts["dispatch"] += split_ns - run_ns
        parts["unsplit"] += sum(batch.duration_ns) - split_ns
