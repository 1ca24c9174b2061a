"""Reads recordings into the samples of their cells; a trial is forgotten once its durations are in the columns."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from costmodel.recording import CellIdentity
from costmodel.uncertainty import quantile
from taxtui.errors import RecordingError
from taxtui.recording import events
from taxtui.recording.events import UNKNOWN, Event
from taxtui.recording.reader import read
from taxtui.report.measured.samples import (
    PER_ACTION,
    PER_TRIAL,
    Column,
    MeasuredAttempt,
    MeasuredCell,
    Source,
    identity_of,
)

STARTED: Final = frozenset({"started", "running"})
"""Marks that show that the sandbox's own process runs: what came before is orchestration."""


def read_samples(paths: Iterable[Path]) -> tuple[list[MeasuredCell], list[Source]]:
    """The cells of all recordings in the order in which they first appear, and the recordings.

    Raises:
        RecordingError: not a recording, damaged, of a newer version, inconsistent, or the same run twice.
    """
    pool: dict[tuple[CellIdentity, str], MeasuredCell] = {}
    sources: dict[str, Source] = {}
    for path in paths:
        reader = _Reader(path, pool)
        source = reader.finish()
        if (same := sources.setdefault(source.run_id, source)) is not source:
            raise RecordingError(f"{source.name} and {same.name} hold the same run", fix="give it once")
    return list(pool.values()), list(sources.values())


class _Reader:
    """Folds one recording into the pool."""

    def __init__(self, path: Path, pool: dict[tuple[CellIdentity, str], MeasuredCell]) -> None:
        self._path = path
        self._pool = pool
        self._cells: dict[int, MeasuredCell] = {}
        self._open: dict[int, _OpenTrial] = {}
        self._run_id = ""
        self._trials = 0
        self._orphans = 0
        self._health: list[events.Health] = []

    def finish(self) -> Source:
        try:
            summary = read(self._path, self._apply)
        except OverflowError:
            raise RecordingError(f"{self._path}: a duration is beyond 292 years; the recording is damaged") from None
        lags = sorted(second.lag_p99_ns for second in self._health) or [0]
        cpus = sorted(second.cpu_permille for second in self._health) or [0]
        source = Source(
            name=self._path.name,
            run_id=summary.header.run_id,
            complete=summary.complete and not (summary.skipped or summary.torn_bytes or self._orphans),
            trials=self._trials,
            lag_p99_ns=quantile(lags, 0.99),
            cpu_permille=quantile(cpus, 0.5),
            floor_ns=max((second.floor_ns for second in self._health), default=UNKNOWN),
        )
        for cell in dict.fromkeys(self._cells.values()):
            cell.sources.append(source)
        return source

    def _apply(self, event: Event) -> None:
        match event:
            case events.Actions() | events.PhaseEnded() | events.Mark():
                if trial := self._open.get(event.trial):
                    trial.add(event)
                else:
                    self._orphans += 1  # its start was lost, as in a salvaged file
            case events.TrialStarted():
                self._open[event.trial] = _OpenTrial(event)
            case events.TrialEnded():
                self._ended(event)
            case events.Health():
                self._health.append(event)
            case events.Cell():
                key = identity_of(event), event.provenance
                self._cells[event.id] = self._pool.setdefault(key, MeasuredCell(event))
            case events.Header():
                self._run_id = event.run_id
            case _:
                pass

    def _ended(self, event: events.TrialEnded) -> None:
        trial = self._open.pop(event.trial, None)
        cell = self._cells.get(trial.cell) if trial else None
        if trial is None or cell is None:
            self._orphans += 1
        elif trial.warm_up or event.outcome in (events.CANCELLED, events.INTERRUPTED):
            pass
        elif event.outcome == events.OK and not trial.whole(cell.identity.actions):
            self._orphans += 1
        else:
            attempt = trial.attempt(event, self._run_id)
            if attempt.held_ns < sum(trial.actions_ns) + attempt.think_ns or trial.impossible:
                raise RecordingError(f"{self._path}: trial {event.trial} has impossible durations; it is damaged")
            self._trials += 1
            cell.attempts.append(attempt)
            if attempt.ok:
                trial.move_into(cell.columns, attempt, event.queued_ns)


class _OpenTrial:
    """A trial that has started and not yet ended."""

    __slots__ = (
        "actions_ns",
        "block",
        "cell",
        "create_ns",
        "gapless",
        "phases",
        "process_ns",
        "runs_ns",
        "setup_ns",
        "setup_runs_ns",
        "start_ns",
        "think_ns",
        "warm_up",
    )

    def __init__(self, event: events.TrialStarted) -> None:
        self.cell = event.cell
        self.block = event.block
        self.warm_up = event.warm_up
        self.start_ns = event.start_ns
        self.create_ns = event.start_ns  # when the request was sent that was answered
        self.process_ns: list[int] = []  # marks of STARTED
        self.phases: Counter[str] = Counter()
        self.setup_ns = array("q")
        self.setup_runs_ns = array("q")
        self.actions_ns = array("q")
        self.runs_ns = array("q")
        self.think_ns = 0
        self.gapless = True  # no action is missing between those that are there

    def add(self, event: events.Actions | events.PhaseEnded | events.Mark) -> None:
        match event:
            case events.Actions(step=events.ACTION):
                self._commands(event, self.actions_ns, self.runs_ns)
                self.think_ns += sum(event.think_ns)
            case events.Actions(step=events.SETUP):
                self._commands(event, self.setup_ns, self.setup_runs_ns)
            case events.PhaseEnded():
                self.phases[event.phase] += event.duration_ns
                if event.phase == events.CREATE:
                    self.create_ns = event.start_ns
            case events.Mark() if event.name in STARTED:
                self.process_ns.append(event.at_ns)
            case _:
                pass

    def _commands(self, event: events.Actions, durations_ns: array[int], runs_ns: array[int]) -> None:
        self.gapless &= event.first == len(durations_ns)
        durations_ns.extend(event.duration_ns)
        runs_ns.extend(events.runs(event))
        self.gapless &= len(runs_ns) == len(durations_ns)

    def whole(self, actions: int) -> bool:
        """Whether it has all that a successful trial of this length must have."""
        return self.gapless and len(self.actions_ns) == actions

    @property
    def impossible(self) -> bool:
        """Whether a duration is negative."""
        known = (self.phases.values(), self.actions_ns, self.setup_ns, (self.think_ns,))
        return any(min(column, default=0) < 0 for column in known) or any(
            min(column, default=0) < UNKNOWN for column in (self.runs_ns, self.setup_runs_ns)
        )

    def attempt(self, event: events.TrialEnded, run_id: str) -> MeasuredAttempt:
        known = UNKNOWN not in self.runs_ns and UNKNOWN not in self.setup_runs_ns
        work_ns = sum(self.runs_ns) + sum(self.setup_runs_ns)
        return MeasuredAttempt(
            run_id=run_id,
            block=self.block,
            ok=event.outcome == events.OK,
            held_ns=event.end_ns - self.start_ns - self.phases[events.READY_AGAIN],
            think_ns=self.think_ns,
            work_ns=work_ns if known else UNKNOWN,
            dispatch_ns=sum(self.actions_ns) + sum(self.setup_ns) - work_ns,
        )

    def move_into(self, columns: dict[str, Column], attempt: MeasuredAttempt, queued_ns: int) -> None:
        """Every duration that measurement.md derives from a trial, into the cell's columns."""
        phases = self.phases
        pairs = list(zip(self.actions_ns, self.runs_ns, strict=True))
        runs_ns = [run for _, run in pairs if run != UNKNOWN]
        dispatches_ns = [duration - run for duration, run in pairs if run != UNKNOWN]
        create_ns = phases[events.CREATE] + phases[events.RESET]
        cold_ns = create_ns + phases[events.READY]
        fresh_ns = cold_ns + phases[events.PRELOAD] + phases[events.SETUP]
        trajectory_ns = attempt.held_ns - queued_ns - attempt.think_ns
        own = {
            "create": create_ns,
            "ready": phases[events.READY],
            "orchestration": self._orchestration_ns(),
            "preload": phases[events.PRELOAD],
            "setup": phases[events.SETUP],
            "run_total": sum(runs_ns),
            "dispatch_total": sum(dispatches_ns),
            "unsplit_total": sum(duration for duration, run in pairs if run == UNKNOWN),
            "harness": trajectory_ns - fresh_ns - sum(self.actions_ns),
            "cold_start": cold_ns,
            "fresh_episode": fresh_ns,
            "trajectory": trajectory_ns,
            "amortized_per_action": round(trajectory_ns / len(pairs)) if pairs else None,
            "ready_again": phases.get(events.READY_AGAIN),
            "queued": queued_ns,
            "think": attempt.think_ns,
            "held": attempt.held_ns,
            "cleanup": phases.get(events.CLEANUP),
        }
        for name in PER_TRIAL:
            value = own[name]
            columns[name].add(() if value is None else (value,))
        for name, values in zip(PER_ACTION, (self.actions_ns, runs_ns, dispatches_ns), strict=True):
            columns[name].add(values)

    def _orchestration_ns(self) -> int | None:
        """From the create request to the first sign of the sandbox's own process; None where no mark shows it."""
        signs = [at_ns - self.create_ns for at_ns in self.process_ns if at_ns >= self.create_ns]
        return min(signs, default=None)
