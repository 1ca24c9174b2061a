"""Reads a recording into trials by cell, and opens files of either kind: recordings and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from costmodel.errors import SourceError
from costmodel.recording import events
from costmodel.recording.breakdown import STARTED, UNKNOWN, Split, known_parts, measure
from costmodel.recording.causes import recorded_cause
from costmodel.recording.follower import read_events
from costmodel.recording.published import Published, read_published
from costmodel.recording.runner_health import FLOOR_LIMIT_NS, WorkerFitness
from costmodel.recording.trial import CellIdentity, RecordedTrial
from costmodel.statistics.repetitions import RunKey
from costmodel.training.length import FIXED_LENGTH


class RecordedCell:
    """One cell of a recording."""

    def __init__(self, event: events.Cell) -> None:
        self.identity = CellIdentity(*(getattr(event, field) for field in CellIdentity._fields))
        self.cycle = max(1, event.cycle)
        self.preload = event.preload
        self.provenance = event.provenance
        self.resolution_ns = event.resolution_ns
        # Quantities that no trial of an imported cell reports:
        marks = (mark for mark in event.capabilities if mark.startswith("unknown:"))
        self.unreported = frozenset(mark.removeprefix("unknown:") for mark in marks)
        self.trials: list[RecordedTrial] = []


class Recording:
    """The cells of a file with their trials, completeness and health."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.run_id = ""
        self.cells: list[RecordedCell] = []
        self.complete = False  # ends with RunFinished and the reported number of trials
        self.lag_p99_ns = 0  # p99 over the seconds' p99; worst worker
        self.cpu_permille = 0  # median over the seconds; worst worker
        self.workers: dict[int, WorkerFitness] = {}  # by number in the file, because clocks differ
        self.at_once = 1  # planned concurrent workers
        self.floor_ns = UNKNOWN  # time to spawn ``true``, of the worst worker
        self.skipped = 0
        self.torn_bytes = 0

    @property
    def whole(self) -> bool:
        """Whether the run ended normally and no event is missing."""
        return self.complete and not self.skipped and not self.torn_bytes

    @property
    def trials(self) -> int:
        return sum(len(cell.trials) for cell in self.cells)


def read_recording(path: Path) -> Recording:
    """Read a recording of any size at about a million actions a second.

    Raises:
        SourceError: not a recording, damaged (with the offset), of a newer version, or inconsistent.
    """
    recording, trials = Recording(path.name), TrialReader()
    floors_ns: dict[int, int] = {}  # by worker

    def apply(event: events.Event) -> None:
        if (ended := trials.apply(event)) is not None:
            trial, identity = ended.trial, ended.cell.identity
            if ended.started.warm_up or ended.end.outcome in (events.CANCELLED, events.INTERRUPTED):
                return
            if trial.ok and identity.length == FIXED_LENGTH and len(trial.durations_ns) != identity.actions:
                trial.complete = False
            if trial.complete:
                ended.cell.trials.append(trial)
            else:
                recording.skipped += 1
        elif isinstance(event, events.Header):
            planned = event.scenario.get("workers")
            recording.at_once = planned if isinstance(planned, int) and planned > 0 else 1
        elif isinstance(event, events.Health):
            recording.workers.setdefault(trials.worker, WorkerFitness()).add(event)
            floors_ns[trials.worker] = event.floor_ns

    summary = read_events(path, apply)
    recording.run_id, recording.cells = trials.run_id, trials.announced
    recording.complete = summary.complete
    recording.skipped += trials.orphans + summary.skipped
    recording.torn_bytes = summary.torn_bytes
    unreported = WorkerFitness()
    for cell in recording.cells:
        for trial in cell.trials:
            slow = floors_ns.get(trial.worker, UNKNOWN) > FLOOR_LIMIT_NS
            share = recording.workers.get(trial.worker, unreported).share(trial.start_ns, trial.end_ns)
            trial.exposed = 1.0 if slow else share
    workers = recording.workers.values()
    recording.floor_ns = max(floors_ns.values(), default=UNKNOWN)
    recording.lag_p99_ns = max((worker.lag_p99_ns for worker in workers), default=0)
    recording.cpu_permille = max((worker.cpu_permille for worker in workers), default=0)
    return recording


class TrialReader:
    """Folds the events of a file into trials."""

    def __init__(self) -> None:
        self.run_id = ""
        self.announced: list[RecordedCell] = []
        self.worker = 0  # of the current events
        self.orphans = 0  # events of trials whose start, or whose cell, was lost
        self.open: dict[int, OpenTrial] = {}
        self._anchor_unix_ns = 0
        self._cells: dict[int, RecordedCell] = {}
        self._runs: dict[RunKey, RunKey] = {}  # one object per key, shared by its trials

    def apply(self, event: events.Event) -> OpenTrial | None:
        """Apply the next event; return the trial that the event ends, with its cell."""
        if isinstance(event, events.PhaseEnded | events.Actions):  # most frequent first
            if (trial := self.open.get(event.trial)) is None:
                self.orphans += 1
            else:
                trial.add(event)
        elif isinstance(event, events.TrialStarted):
            run = RunKey(self.run_id, event.repetition)
            run = self._runs.setdefault(run, run)
            self.open[event.trial] = OpenTrial(event, run, self.worker, self._anchor_unix_ns + event.start_ns)
        elif isinstance(event, events.TrialEnded):
            if (ended := self.open.pop(event.trial, None)) and ended.started.cell in self._cells:
                ended.cell = self._cells[ended.started.cell]
                ended.close(event)
                return ended
            self.orphans += 1
        elif isinstance(event, events.Mark):
            if trial := self.open.get(event.trial):
                trial.mark(event)
        elif isinstance(event, events.Clock):
            self.worker, self._anchor_unix_ns = event.worker, event.unix_ns
        elif isinstance(event, events.Header):
            self.run_id = event.run_id
        elif isinstance(event, events.Cell):
            self._cells[event.id] = cell = RecordedCell(event)
            self.announced.append(cell)
        return None


class OpenTrial:
    """A started trial: its events so far, and its durations after the end."""

    cell: RecordedCell  # after the end, as found by ``TrialReader``
    end: events.TrialEnded

    def __init__(self, event: events.TrialStarted, run: RunKey, worker: int, start_unix_ns: int) -> None:
        self.started = event
        self.start_unix_ns = start_unix_ns
        self.create_ns = event.start_ns  # create request that succeeded
        self.process_ns: list[int] = []  # milestones of the sandbox's process
        self.phases: dict[str, int] = {}
        self.last_ns = event.start_ns  # end of the last phase
        self.setup_commands = 0
        self.trial = RecordedTrial(run, event.block, event.start_ns, worker, group=event.group, cpu_ns=0)

    def mark(self, event: events.Mark) -> None:
        if event.name in STARTED:
            self.process_ns.append(event.at_ns)
        elif event.name in (events.IMAGE_BUILT, events.IMAGE_CACHED):
            self.trial.image_cached = event.name == events.IMAGE_CACHED
        elif event.name == events.BORROWED:
            self.trial.borrowed = True

    def add(self, event: events.Actions | events.PhaseEnded) -> None:
        if isinstance(event, events.Actions):
            self._commands(event)
            return
        phase, end_ns = event.phase, event.start_ns + event.duration_ns
        self.phases[phase] = self.phases.get(phase, 0) + event.duration_ns
        if end_ns > self.last_ns:
            self.last_ns = end_ns
        if phase in ("create", "reset"):
            self.create_ns = event.start_ns

    def _commands(self, event: events.Actions) -> None:
        trial, count = self.trial, len(event.duration_ns)
        if event.step not in (events.SETUP, events.ACTION):
            return
        expected = self.setup_commands if event.step == events.SETUP else len(trial.durations_ns)
        trial.complete &= event.first == expected
        if trial.cpu_ns is not None:
            all_known = len(event.cpu_ns) == count and UNKNOWN not in event.cpu_ns
            trial.cpu_ns = trial.cpu_ns + sum(event.cpu_ns) if all_known else None
        runs_ns, wrappers_ns = known_parts(event.duration_ns, event.run_ns, event.wrapper_ns)
        if event.step == events.SETUP:
            self.setup_commands += count
            trial.setup = trial.setup.plus(Split.of(event.duration_ns, runs_ns, wrappers_ns))
            return
        trial.durations_ns.extend(event.duration_ns)
        trial.runs_ns.extend(runs_ns)
        trial.wrappers_ns.extend(wrappers_ns)
        trial.gaps_ns.extend(events.column(event.gap_ns, count))
        trial.thinks_ns.extend(events.column(event.think_ns, count))

    def held_ns(self, end_ns: int) -> int:
        """Return the occupied time: from the first create request to the end of the last action, or the failure."""
        return end_ns - self.started.start_ns - self.phases.get(events.READY_AGAIN, 0)

    def close(self, event: events.TrialEnded) -> None:
        """Set everything that is known after the end."""
        trial = self.trial
        self.end = event
        trial.gap_ns = sum(trial.gaps_ns)
        trial.actions = Split.of(trial.durations_ns, trial.runs_ns, trial.wrappers_ns)
        trial.ok = event.outcome == events.OK
        trial.failed_in, trial.error = event.phase, event.error
        trial.cause = recorded_cause(event.outcome, event.error, event.phase, event.cause)
        trial.end_ns = event.end_ns
        trial.freed_ns = max(event.end_ns, self.last_ns)
        trial.measures = measure(
            self.phases,
            trial.setup,
            trial.actions,
            held_ns=self.held_ns(event.end_ns),
            queued_ns=event.queued_ns,
            think_ns=sum(trial.thinks_ns),
            orchestration_ns=min((ns - self.create_ns for ns in self.process_ns if ns >= self.create_ns), default=None),
            cpu_ns=trial.cpu_ns,
            start_delay_ns=max(0, self.started.start_ns - self.started.scheduled_ns),
        )
        trial.sandbox_ns = max(0, event.end_ns - self.create_ns - self.phases.get("ready_again", 0))


Data = Recording | Published | Sequence[Recording | Published]
"""One file, or several."""


def files_of(data: Data) -> list[Recording | Published]:
    """Return one file or several as a list. Raises ``SourceError``: something else was given."""
    files = [data] if isinstance(data, Recording | Published | str | PathLike) else list(data)
    for item in files:
        if not isinstance(item, Recording | Published):
            raise SourceError(f"{item!r} is no loaded file", fix="use costmodel.load(PATH)")
    return files


def load(path: str | PathLike[str]) -> Recording | Published:
    """Read a recording, or published latencies where the name ends in ``.toml``.

    Raises:
        SourceError: the file is unreadable or damaged, with the offset in bytes.
    """
    path = Path(path)
    return read_published(path) if path.suffix == ".toml" else read_recording(path)
