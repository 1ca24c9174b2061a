"""What the fold keeps of a trial in flight and of a cell, and how a trial's phases become a cell's durations."""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from taxtui.live.histogram import LogHistogram
from taxtui.recording import events

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
    phases: dict[str, int] = field(default_factory=dict)  # ns by phase
    actions: list[events.Actions] = field(default_factory=list)
    done: int = 0  # actions
    last_ns: int = 0
    doing: str = ""  # the mark, phase or action that was last seen; as in the file, not cleaned

    def taken_ns(self, phase: str) -> int:
        """How long a phase took; 0 where it did not happen."""
        return self.phases.get(phase, 0)

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
    facets, parts, taken_ns = cell.facets, cell.parts_ns, trial.taken_ns
    create_ns, ready_ns = taken_ns(events.CREATE) + taken_ns(events.RESET), taken_ns(events.READY)
    preload_ns, setup_ns = taken_ns(events.PRELOAD), taken_ns(events.SETUP)
    facets["cold_start"].add((create_ns + ready_ns,))
    facets["fresh_episode"].add((create_ns + ready_ns + preload_ns + setup_ns,))
    think_ns = sum(sum(batch.think_ns) for batch in trial.actions)
    facets["trajectory"].add((held_ns - queued_ns - think_ns,))
    parts["create"] += create_ns
    parts["ready"] += ready_ns
    parts["preload"] += preload_ns
    parts["setup"] += setup_ns
    parts["cleanup"] += taken_ns(events.CLEANUP)
    for batch in trial.actions:
        durations_ns, runs_ns = batch.duration_ns, events.runs(batch)
        facets["action"].add(durations_ns)
        unsplit_ns = 0
        if min(runs_ns, default=0) < 0:  # unknown for some: they are in neither run nor dispatch
            known = [(ns, run_ns) for ns, run_ns in zip(durations_ns, runs_ns, strict=False) if run_ns >= 0]
            unsplit_ns = sum(durations_ns) - sum(ns for ns, _ in known)
            durations_ns, runs_ns = [ns for ns, _ in known], [run_ns for _, run_ns in known]
        dispatches_ns = list(map(operator.sub, durations_ns, runs_ns))
        facets["run"].add(runs_ns)
        facets["dispatch"].add(dispatches_ns)
        parts["run"] += sum(runs_ns)
        parts["dispatch"] += sum(dispatches_ns)
        parts["unsplit"] += unsplit_ns
