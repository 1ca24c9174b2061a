"""State of a run from the events of a recording: for the TUI, the replay and summaries.

``RunState.apply`` is called once per event, so that a live run and a replay end in the same state. Memory is bounded by
the number of cells and trials in flight; only the workers' health grows, by a report a second. The histograms count the
trials of the exact tables: successful, no warm-ups. ``cleanup`` counts every trial.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from costmodel import RunKey, WorkerFitness, events
from taxtui.live.cell_state import CellState, TrialInFlight, take_in
from taxtui.terminal_text import clean

LOG_LINES: Final = 500


class LogLine(msgspec.Struct, frozen=True):
    """A line of the event log: an ended trial or a notice."""

    unix_ns: int
    level: str  # ok | info | warning | error
    text: str  # the error or the notice; "" for a successful trial
    trial: int | None = None
    cell: int | None = None
    held_ns: int = 0


@dataclass(slots=True)
class RunState:
    """State of a run. Unknown phases, outcomes and trials are kept."""

    run_id: str = ""
    name: str = ""
    cells: dict[int, CellState] = field(default_factory=dict)
    open: dict[int, TrialInFlight] = field(default_factory=dict, compare=False)
    log: deque[LogLine] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    runners: dict[int, WorkerFitness] = field(default_factory=dict)  # by worker
    started_unix_ns: int = 0
    now_unix_ns: int = 0  # the latest instant in any event
    outcome: str | None = None  # None: in progress, or cut off
    repetition: int = 1  # the current one, from 1
    repetitions: int = 1  # planned, or at most
    _anchor_unix_ns: int = 0  # of the worker
    _worker: int = 0  # whose events follow

    @property
    def runner(self) -> WorkerFitness:
        """The worker least fit to measure."""
        fitness = [(bool(runner.problems), runner.lag_p99_ns, worker) for worker, runner in self.runners.items()]
        return self.runners[max(fitness)[-1]] if fitness else WorkerFitness()

    def apply(self, event: events.Event) -> None:
        self.now_unix_ns = max(self.now_unix_ns, self.instant_unix_ns(event))
        match event:
            case events.Actions():
                if trial := self.open.get(event.trial):
                    trial.add(event)
                    if event.step == events.ACTION:
                        trial.doing = f"action {len(trial.trial.durations_ns)}"
            case events.PhaseEnded():
                if trial := self.open.get(event.trial):
                    trial.add(event)
                    trial.doing = event.phase
            case events.Mark():
                if trial := self.open.get(event.trial):
                    trial.doing = event.name
            case events.TrialStarted():
                self.repetition = event.repetition + 1
                run, start_unix_ns = RunKey(self.run_id, event.repetition), self._anchor_unix_ns + event.start_ns
                self.open[event.trial] = TrialInFlight(event, run, self._worker, start_unix_ns)
            case events.TrialEnded():
                self._trial_ended(event)
            case events.Health():
                self.runners.setdefault(self._worker, WorkerFitness()).add(event)
            case events.Notice():
                self.log.append(LogLine(self._anchor_unix_ns + event.at_ns, clean(event.level), clean(event.text)))
            case events.Clock():
                self._worker, self._anchor_unix_ns = event.worker, event.unix_ns
                self.started_unix_ns = self.started_unix_ns or event.unix_ns
            case events.Header():
                self._header(event)
            case events.Cell():
                self._describe(event)
            case events.RunFinished():
                self.outcome = clean(event.outcome)

    def instant_unix_ns(self, event: events.Event) -> int:
        """Return the instant of the next event, for display and replay; 0 for events without one."""
        instant_ns = _INSTANTS.get(type(event))
        if instant_ns is not None:
            return self._anchor_unix_ns + instant_ns(event)
        return event.unix_ns if isinstance(event, events.Clock) else 0

    @property
    def elapsed_ns(self) -> int:
        """Time from the first worker's start to the latest instant."""
        return max(0, self.now_unix_ns - self.started_unix_ns)

    def by_substrate(self) -> dict[str, list[CellState]]:
        """Return the cells by label, in the order of the plan."""
        groups: dict[str, list[CellState]] = {}
        for cell in self.cells.values():
            groups.setdefault(cell.label, []).append(cell)
        return groups

    def remaining_ns(self, cells: Iterable[CellState]) -> float | None:
        """Return the time until these cells alone are done; None without an ended trial or a plan.

        A cell without an ended trial is assumed as slow as the mean of the others. Trials run in rounds of as many as
        there are slots; warm-ups run one after the other.
        """
        cells = list(cells)
        means = [mean for cell in cells if (mean := cell.trial_ns) is not None]
        if not means or any(cell.planned is None for cell in cells):
            return None
        typical = sum(means) / len(means)
        total = 0.0
        for cell in cells:
            warm_ups = max(0, cell.planned_warm_ups - cell.warm_ups)
            rounds = math.ceil(max(0, (cell.planned or 0) - cell.finished) / cell.concurrency)
            total += (warm_ups + rounds) * (typical if cell.trial_ns is None else cell.trial_ns)
        return total

    def _cell(self, key: int) -> CellState:
        if key not in self.cells:
            self.cells[key] = CellState(key, f"cell {key}")
        return self.cells[key]

    def _header(self, event: events.Header) -> None:
        self.run_id = clean(event.run_id)
        scenario = event.scenario
        self.name = clean(str(scenario.get("name", "")))
        self.repetitions = max(1, _whole(scenario.get("repeat")))
        planned = scenario.get("cells")
        open_end = bool(scenario.get("until"))  # of earlier versions: repetitions up to a precision
        for key, plan in enumerate(planned if isinstance(planned, list | tuple) else ()):
            if isinstance(plan, Mapping):  # the rest of the plan is in the events of cells
                cell = self._cell(key)
                limited = "trials" in plan and not open_end
                cell.planned = self.repetitions * _whole(plan["trials"]) if limited else None
                cell.planned_warm_ups = self.repetitions * _whole(plan.get("warmup"))

    def _describe(self, event: events.Cell) -> None:
        cell = self._cell(event.id)
        cell.label = clean(f"{event.substrate}:{event.variant}" if event.variant else event.substrate)
        cell.tier, cell.mode = clean(event.tier), clean(event.mode)
        cell.actions, cell.length, cell.concurrency = event.actions, event.length, max(1, event.concurrency)
        cell.arrival, cell.think, cell.acquire = clean(event.arrival), clean(event.think), clean(event.acquire)
        cell.provenance = clean(event.provenance)

    def _trial_ended(self, event: events.TrialEnded) -> None:
        trial = self.open.pop(event.trial, None)
        if trial is None:  # the start was lost: logged, but not counted
            self._log_trial(event, None, 0)
            return
        cell = self._cell(trial.started.cell)
        trial.close(event)
        cell.occupied_ns += trial.trial.freed_ns - trial.started.start_ns
        self._log_trial(event, trial, trial.trial.measures.held_ns)
        if trial.started.warm_up:
            cell.warm_ups += 1
            return
        cell.outcomes[clean(event.outcome)] += 1
        if events.CLEANUP in trial.phases:
            cell.facets["cleanup"].add((trial.phases[events.CLEANUP],))
        if event.outcome == events.OK:
            take_in(cell, trial.trial)

    def _log_trial(self, event: events.TrialEnded, trial: TrialInFlight | None, held_ns: int) -> None:
        if event.outcome == events.OK:
            level, text = "ok", ""
        else:
            level = "warning" if event.outcome in (events.CANCELLED, events.INTERRUPTED) else "error"
            where = f" in {event.phase}" if event.phase else ""
            detail = ": ".join(filter(None, (event.error, event.message)))
            text = clean(f"{event.outcome}{where}{' · ' if detail else ''}{detail}")
        if trial and trial.started.warm_up:
            text = f"warm-up{' · ' if text else ''}{text}"
        unix_ns = self._anchor_unix_ns + event.end_ns
        self.log.append(LogLine(unix_ns, level, text, event.trial, trial.started.cell if trial else None, held_ns))


_INSTANTS: Final[Mapping[type, Callable[[Any], int]]] = {
    events.TrialStarted: lambda event: event.start_ns,
    events.Mark: lambda event: event.at_ns,
    events.PhaseEnded: lambda event: event.start_ns + event.duration_ns,
    events.TrialEnded: lambda event: event.end_ns,
    events.Health: lambda event: event.at_ns,
    events.Notice: lambda event: event.at_ns,
}


def _whole(value: object) -> int:
    """Return a count from a scenario of any version; 0 for any other value."""
    return max(0, value) if isinstance(value, int) else 0
