"""Reads a recording into trials by cell: what each trial held a worker for, and its commands as columns."""

from __future__ import annotations

import zlib
from array import array
from pathlib import Path
from typing import Final, NamedTuple

from costmodel import wire
from costmodel.errors import SourceError

OK: Final = "ok"
NOT_COUNTED: Final = ("cancelled", "interrupted")
LAG_LIMIT_NS: Final = 5_000_000
CPU_LIMIT_PERMILLE: Final = 800


class CellIdentity(NamedTuple):
    """All that makes two cells the same, in any file; equal ones pool."""

    substrate: str
    variant: str
    tier: str
    tier_digest: str
    actions: int
    mode: str
    concurrency: int
    arrival: str
    think: str
    acquire: str
    cache: str
    cpu_milli: int
    memory_mib: int
    network: str
    image: str
    environment: str
    substrate_version: str

    @property
    def cell_id(self) -> str:
        """Eight hex digits, the same in every file."""
        return f"{zlib.crc32(repr(tuple(self)).encode()):08x}"

    @property
    def label(self) -> str:
        """Substrate and variant."""
        return f"{self.substrate}:{self.variant}" if self.variant else self.substrate


class RecordedTrial:
    """One finished trial that counts: a success, a failure or a timeout. Durations are int ns."""

    __slots__ = (
        "block",
        "cleanup_ns",
        "cold_ns",
        "complete",
        "held_ns",
        "ok",
        "queued_ns",
        "run_id",
        "runs_ns",
        "sandbox_ns",
        "setup_dispatch_ns",
        "setup_run_ns",
        "spans_ns",
        "thinks_ns",
    )

    def __init__(self, run_id: str, block: int) -> None:
        """A trial of which nothing is known yet."""
        self.run_id = run_id
        self.block = block
        self.ok = False
        self.complete = True  # no action is missing between those that are there
        self.held_ns = 0  # what the worker was occupied for, clean-up apart
        self.queued_ns = 0  # of that, imposed by throttles
        self.cold_ns = 0  # create (or reset) and ready
        self.cleanup_ns = 0
        self.sandbox_ns = 0  # the provider's clock: accepted create request to end, clean-up apart
        self.setup_run_ns = 0  # UNKNOWN if it could not be measured
        self.setup_dispatch_ns = 0
        self.spans_ns = array("q")  # per action: harness gap and the action, think time apart
        self.thinks_ns = array("q")  # per action; empty where all are 0
        self.runs_ns = array("q")  # per action: inside the sandbox, or UNKNOWN


class RecordedCell:
    """What a recording knows of one cell."""

    __slots__ = ("cycle", "identity", "provenance", "trials")

    def __init__(self, event: wire.Cell) -> None:
        """A cell without trials."""
        self.identity = CellIdentity(*(getattr(event, field) for field in CellIdentity._fields))
        self.cycle = max(1, event.cycle)
        self.provenance = event.provenance
        self.trials: list[RecordedTrial] = []


class Recording:
    """A whole file: its cells with their trials, and how far it can be trusted."""

    __slots__ = ("cells", "complete", "distorted", "name", "run_id", "skipped", "torn_bytes")

    def __init__(self, name: str) -> None:
        """A recording of which nothing has been read yet."""
        self.name = name
        self.run_id = ""
        self.cells: list[RecordedCell] = []
        self.complete = False  # it ends with RunFinished, and no trial lacks a part
        self.distorted = False  # the measuring process was too busy to be believed
        self.skipped = 0
        self.torn_bytes = 0


def read_recording(path: Path) -> Recording:
    """Read a recording of any size at about a million actions a second.

    Raises:
        SourceError: not a recording, damaged (with the offset), of a newer version, or inconsistent.
    """
    frames = wire.Frames(path)
    reader = _Reader(Recording(path.name), path)
    try:
        for batch in frames:
            for event in batch:
                reader.apply(event)
    except OverflowError:
        raise SourceError(
            f"{path}: damaged at byte {frames.offset}: a duration is beyond 292 years", frames.offset
        ) from None
    recording = reader.finish()
    recording.skipped += frames.skipped
    recording.torn_bytes = frames.torn_bytes
    return recording


class _Reader:
    """Folds events into a recording; a trial is kept in ``_open`` until it ends."""

    def __init__(self, recording: Recording, path: Path) -> None:
        self._recording = recording
        self._path = path
        self._cells: dict[int, RecordedCell] = {}
        self._open: dict[int, _OpenTrial] = {}
        self._lags: list[int] = []
        self._cpus: list[int] = []

    def apply(self, event: wire.Event) -> None:
        if isinstance(event, wire.Header):
            self._recording.run_id = event.run_id
        elif isinstance(event, wire.Cell):
            self._cells[event.id] = cell = RecordedCell(event)
            self._recording.cells.append(cell)
        elif isinstance(event, wire.TrialStarted):
            self._open[event.trial] = _OpenTrial(event, self._recording.run_id)
        elif isinstance(event, wire.Actions | wire.PhaseEnded):
            if (trial := self._open.get(event.trial)) is None:
                self._recording.skipped += 1  # its start was lost, as in a salvaged file
            else:
                trial.add(event)
        elif isinstance(event, wire.TrialEnded):
            self._ended(event)
        elif isinstance(event, wire.Health):
            self._lags.append(event.lag_p99_ns)
            self._cpus.append(event.cpu_permille)
        elif isinstance(event, wire.RunFinished):
            self._recording.complete = True

    def _ended(self, event: wire.TrialEnded) -> None:
        opened = self._open.pop(event.trial, None)
        cell = self._cells.get(opened.cell) if opened else None
        if opened is None or cell is None:
            self._recording.skipped += 1
            return
        if opened.warm_up or event.outcome in NOT_COUNTED:
            return
        trial = opened.closed(event, self._path)
        if trial.ok and len(trial.spans_ns) != cell.identity.actions:
            trial.complete = False
        if trial.complete:
            cell.trials.append(trial)
        else:
            self._recording.skipped += 1

    def finish(self) -> Recording:
        recording = self._recording
        lag = sorted(self._lags)[-1 - len(self._lags) // 100] if self._lags else 0  # a second in a hundred may be bad
        cpu = sorted(self._cpus)[len(self._cpus) // 2] if self._cpus else 0
        recording.distorted = lag > LAG_LIMIT_NS or cpu > CPU_LIMIT_PERMILLE
        return recording


class _OpenTrial:
    """A trial that has started and not yet ended."""

    __slots__ = ("cell", "create_ns", "ready_again_ns", "start_ns", "trial", "warm_up")

    def __init__(self, event: wire.TrialStarted, run_id: str) -> None:
        self.cell = event.cell
        self.warm_up = event.warm_up
        self.start_ns = event.start_ns
        self.create_ns = event.start_ns  # when the request was sent that succeeded
        self.ready_again_ns = 0
        self.trial = RecordedTrial(run_id, event.block)

    def add(self, event: wire.Actions | wire.PhaseEnded) -> None:
        if isinstance(event, wire.PhaseEnded):
            self._phase(event)
        elif event.step == "setup":
            self._setup(event)
        elif event.step == "action":
            self._actions(event)

    def _phase(self, event: wire.PhaseEnded) -> None:
        if event.phase in ("create", "reset", "ready"):
            self.trial.cold_ns += event.duration_ns
            if event.phase != "ready":
                self.create_ns = event.start_ns
        elif event.phase == "ready_again":
            self.ready_again_ns += event.duration_ns
        elif event.phase == "cleanup":
            self.trial.cleanup_ns += event.duration_ns

    def _setup(self, event: wire.Actions) -> None:
        trial, runs = self.trial, _runs(event)
        if wire.UNKNOWN in runs or trial.setup_run_ns == wire.UNKNOWN:
            trial.setup_run_ns = wire.UNKNOWN
            return
        run = sum(runs)
        trial.setup_run_ns += run
        trial.setup_dispatch_ns += sum(event.gap_ns) + sum(event.duration_ns) - run

    def _actions(self, event: wire.Actions) -> None:
        trial, rows = self.trial, len(event.duration_ns)
        if event.first != len(trial.spans_ns) or any(
            column and len(column) != rows for column in (event.gap_ns, event.think_ns, event.run_ns)
        ):
            trial.complete = False
            return
        if event.gap_ns:
            trial.spans_ns.extend([gap + own for gap, own in zip(event.gap_ns, event.duration_ns, strict=True)])
        else:
            trial.spans_ns.extend(event.duration_ns)
        trial.runs_ns.extend(_runs(event))
        if event.think_ns:
            trial.thinks_ns.extend([0] * (event.first - len(trial.thinks_ns)))
            trial.thinks_ns.extend(event.think_ns)

    def closed(self, event: wire.TrialEnded, path: Path) -> RecordedTrial:
        trial = self.trial
        if trial.thinks_ns:
            trial.thinks_ns.extend([0] * (len(trial.spans_ns) - len(trial.thinks_ns)))
        trial.ok = event.outcome == OK
        trial.queued_ns = event.queued_ns
        trial.held_ns = event.end_ns - self.start_ns - self.ready_again_ns
        trial.sandbox_ns = max(0, event.end_ns - self.create_ns - self.ready_again_ns)
        if trial.held_ns < sum(trial.spans_ns) + sum(trial.thinks_ns):
            raise SourceError(f"{path}: trial {event.trial} ends before its last action does; its clock is damaged")
        return trial


def _runs(event: wire.Actions) -> list[int]:
    """The commands' own times: UNKNOWN also where one is longer than its command took."""
    if not event.run_ns:
        return [0] * len(event.duration_ns)
    pairs = zip(event.run_ns, event.duration_ns, strict=False)
    return [run if run <= duration else wire.UNKNOWN for run, duration in pairs]
