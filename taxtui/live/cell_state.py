"""State of a trial in flight and of a cell, and the durations of a cell from the phases of its trials."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import msgspec

from costmodel import FIXED_LENGTH, Length, OpenTrial, RecordedTrial, breakdown, events
from taxtui.live.histogram import LogHistogram

FACETS: Final = ("cold_start", "fresh_episode", "trajectory", "action", "dispatch", "run", "cleanup", "response")
"""Durations of the live histograms, in the order on the screen.

``action``, ``dispatch`` and ``run`` count single actions; ``response`` is empty without a schedule.
"""

PARTS: Final = ("create", "ready", "preload", "work", "dispatch", "unsplit", "wrapper", "harness", "cleanup")
"""A successful trial's time by cause, without throttled and think time, and the clean-up.

Commands are set-up and actions.
"""


class TrialInFlight(OpenTrial):
    """State of a trial in flight."""

    doing = ""  # the last mark, phase or action; as in the file, not cleaned


@dataclass(slots=True)
class CellState:
    """One cell: plan, outcomes, and histograms in ns."""

    id: int
    label: str  # substrate and variant: docker:runsc
    tier: str = "?"
    actions: int = 0
    length: str = FIXED_LENGTH  # or RECORDED: the number of actions differs from trial to trial
    mode: str = "?"
    concurrency: int = 1
    arrival: str = "?"
    think: str = "?"
    acquire: str = "?"
    provenance: str = "measured"
    planned: int | None = None  # None: the header does not say
    planned_warm_ups: int = 0
    warm_ups: int = 0  # ended
    outcomes: Counter[str] = field(default_factory=Counter)
    facets: dict[str, LogHistogram] = field(default_factory=lambda: {name: LogHistogram() for name in FACETS})
    sums_ns: Counter[str] = field(default_factory=Counter)  # over successful trials: ``breakdown.Measures`` by field
    lengths: Counter[int] = field(default_factory=Counter)  # successful trials by their number of actions
    occupied_ns: int = 0  # from the create request to the end of cleanup, over finished trials, warm-ups too

    @property
    def workload(self) -> str:
        """``T0 x 10``; ``T0 x 7-31 avg 14`` for recorded lengths, ``T0 x varied`` before the first trial."""
        if self.length == FIXED_LENGTH:
            return f"{self.tier} x {self.actions:,}"
        return f"{self.tier} x {Length.weighted(self.lengths) if self.lengths else 'varied'}"

    @property
    def mean_actions(self) -> float:
        """Mean number of actions of a successful trial; the planned number before the first."""
        return float(Length.weighted(self.lengths).mean) if self.lengths else self.actions

    @property
    def ok(self) -> int:
        return self.outcomes[events.OK]

    @property
    def finished(self) -> int:
        """Ended trials of every outcome, without warm-ups."""
        return self.outcomes.total()

    @property
    def failed(self) -> int:
        """Ended trials, without successful, cancelled and interrupted ones."""
        return self.finished - sum(self.outcomes[o] for o in (events.OK, events.CANCELLED, events.INTERRUPTED))

    @property
    def trial_ns(self) -> float | None:
        """Mean time from create request to the end of clean-up; None before the first end."""
        ended = self.finished + self.warm_ups
        return self.occupied_ns / ended if ended else None

    def mean_parts_ns(self) -> dict[str, float]:
        """Mean time by part of a successful trial; empty before the first."""
        return {part: mean for part in PARTS if (mean := self.mean_ns(part))}

    def mean_ns(self, name: str) -> float:
        """Mean of a field of ``breakdown.Measures`` over successful trials; 0 before the first."""
        return self.sums_ns[f"{name}_ns"] / self.ok if self.ok else 0.0


def take_in(cell: CellState, trial: RecordedTrial) -> None:
    """Add a successful trial's durations to a cell."""
    facets, measures = cell.facets, trial.measures
    works_ns, dispatches_ns = breakdown.parted(trial.durations_ns, trial.runs_ns, trial.wrappers_ns)
    facets["action"].add(trial.durations_ns)
    facets["run"].add(works_ns)
    facets["dispatch"].add(dispatches_ns)
    facets["cold_start"].add((measures.cold_start_ns,))
    facets["fresh_episode"].add((measures.fresh_episode_ns,))
    facets["trajectory"].add((measures.trajectory_ns,))
    if breakdown.has_schedule(cell.arrival):
        facets["response"].add((measures.response_ns,))
    cell.lengths[len(trial.durations_ns)] += 1
    sums_ns = cell.sums_ns
    for name, value in zip(measures.__struct_fields__, msgspec.structs.astuple(measures), strict=True):
        sums_ns[name] += value or 0
