"""A recording as tables of plain values, for spreadsheets, pandas, polars and SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from costmodel.errors import SourceError
from costmodel.recording import events
from costmodel.recording.breakdown import UNKNOWN, has_schedule, known_runs, known_wrappers
from costmodel.recording.follower import READ_BYTES, Follower
from costmodel.recording.reader import OK, OpenTrial, RecordedCell
from costmodel.recording.trial import RecordedTrial
from costmodel.statistics.repetitions import RunKey

Value = int | str | bool | None
TableRow = tuple[Value, ...]


class FrameColumn(NamedTuple):
    """A column, with the unit in its name. None: unknown."""

    name: str
    kind: type[int] | type[str] | type[bool]
    about: str


_TRIAL: Final = (
    FrameColumn("run_id", str, "id of the measurement; sorts by time"),
    FrameColumn("repetition", int, "from 0"),
    FrameColumn("trial", int, "number within the measurement"),
)
_CELL: Final = (
    FrameColumn("cell", str, "digest; trials of equal cells pool"),
    FrameColumn("substrate", str, ""),
    FrameColumn("variant", str, "runtime, transport or instance type"),
    FrameColumn("tier", str, ""),
    FrameColumn("mode", str, "exec or session"),
    FrameColumn("concurrency", int, "trials at a time"),
    FrameColumn("arrival", str, "start of trials"),
    FrameColumn("acquire", str, "create, reset, pool:NAME …"),
    FrameColumn("provenance", str, "measured, stand_in or imported"),
)
COLUMNS: Final[dict[str, tuple[FrameColumn, ...]]] = {
    "trials": (
        *_TRIAL,
        *_CELL,
        FrameColumn("actions", int, "finished actions"),
        FrameColumn("attempt", int, "from 0"),
        FrameColumn("warm_up", bool, "not counted"),
        FrameColumn("block", int, "trials shuffled together"),
        FrameColumn("task", str, "digest of the prompt or problem"),
        FrameColumn("group", str, "digest; rollouts of the same prompt"),
        FrameColumn("training_step", int, ""),
        FrameColumn("node", str, "digest of the machine"),
        FrameColumn("image", str, "digest, where trials of a cell differ"),
        FrameColumn("image_bytes", int, ""),
        FrameColumn("outcome", str, "ok, failed, timeout, cancelled or interrupted"),
        FrameColumn("phase", str, "phase of the failure"),
        FrameColumn("error", str, "class of the error"),
        FrameColumn("start_unix_ns", int, "first create request"),
        FrameColumn("late_ns", int, "start delay"),
        FrameColumn("response_ns", int, "start delay + occupied time"),
        FrameColumn("create_ns", int, ""),
        FrameColumn("ready_ns", int, ""),
        FrameColumn("preload_ns", int, ""),
        FrameColumn("setup_ns", int, "phase"),
        FrameColumn("cold_start_ns", int, "create and ready"),
        FrameColumn("fresh_episode_ns", int, "until the first action"),
        FrameColumn("trajectory_ns", int, "held − queued − think"),
        FrameColumn("held_ns", int, "occupied time"),
        FrameColumn("work_ns", int, "in-sandbox time of set-up and actions"),
        FrameColumn("dispatch_ns", int, "dispatch of set-up and actions"),
        FrameColumn("unsplit_ns", int, "undivided command time"),
        FrameColumn("harness_ns", int, "runner gap"),
        FrameColumn("queued_ns", int, "throttled"),
        FrameColumn("think_ns", int, "model time"),
        FrameColumn("cleanup_ns", int, ""),
        FrameColumn("verify_ns", int, "the task's own tests"),
        FrameColumn("sandbox_ns", int, "billed life without clean-up"),
        FrameColumn("complete", bool, "no command is missing"),
        FrameColumn("wrapper_ns", int, "wrapper time of set-up and actions"),
        FrameColumn("cause", str, "of the failure or limit"),
    ),
    "actions": (
        *_TRIAL,
        FrameColumn("step", str, "preload, setup or action"),
        FrameColumn("index", int, "within the step"),
        FrameColumn("think_ns", int, "model time before the command"),
        FrameColumn("gap_ns", int, "runner gap before the command"),
        FrameColumn("duration_ns", int, "submission to result"),
        FrameColumn("run_ns", int, "in-sandbox time"),
        FrameColumn("cpu_ns", int, "CPU time of the command"),
        FrameColumn("exit_code", int, ""),
        FrameColumn("stdout_bytes", int, ""),
        FrameColumn("stderr_bytes", int, ""),
        FrameColumn("wrapper_ns", int, "wrapper time"),
    ),
    "health": (
        FrameColumn("run_id", str, ""),
        FrameColumn("worker", int, "measuring process"),
        FrameColumn("at_unix_ns", int, ""),
        FrameColumn("lag_p50_ns", int, "event loop lag: excess of a 10 ms sleep"),
        FrameColumn("lag_p99_ns", int, ""),
        FrameColumn("lag_max_ns", int, ""),
        FrameColumn("cpu_permille", int, "of one core"),
        FrameColumn("in_flight", int, "trials"),
        FrameColumn("pool_waits", int, "calls without a free thread"),
        FrameColumn("floor_ns", int, "median of spawning `true`"),
    ),
}
"""Table → columns in order; docs/measurement.md defines the durations."""


def frame(*paths: str | PathLike[str], table: str = "trials") -> dict[str, list[Value]]:
    """Return a table of one or more recordings as columns: ``pandas.DataFrame(frame(path))``.

    Raises:
        SourceError: a file is unreadable or damaged, or the table is unknown.
    """
    names = [column.name for column in table_columns(table)]
    values = list(table_rows(paths, table))
    return dict(zip(names, map(list, zip(*values, strict=True)) if values else ([] for _ in names), strict=True))


def table_columns(table: str) -> tuple[FrameColumn, ...]:
    """Return the columns of a table. Raises ``SourceError`` for an unknown table."""
    if table not in COLUMNS:
        raise SourceError(f"there is no table {table!r}; there are {', '.join(COLUMNS)}")
    return COLUMNS[table]


def table_rows(paths: Iterable[str | PathLike[str]], table: str = "trials") -> Iterator[TableRow]:
    """Yield the rows of a table with the values of ``table_columns``; memory is that of one trial.

    Trials come in the order of their ends; unfinished trials are left out. Raises as ``frame``.
    """
    table_columns(table)
    for path in map(Path, paths):
        reader = _Reader(table)
        with Follower(path) as follower:
            while batch := follower.poll(READ_BYTES):
                for event in batch:
                    yield from reader.rows(event)
            follower.finish()


class _Reader:
    """State between events."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._run_id = ""
        self._worker = 0
        self._anchor_unix_ns = 0
        self._cells: dict[int, RecordedCell] = {}
        self._open: dict[int, tuple[events.TrialStarted, OpenTrial, int]] = {}

    def rows(self, event: events.Event) -> Iterator[TableRow]:
        """Yield the rows that an event completes."""
        if isinstance(event, events.Header):
            self._run_id = event.run_id
        elif isinstance(event, events.Clock):
            self._worker, self._anchor_unix_ns = event.worker, event.unix_ns
        elif isinstance(event, events.Cell):
            self._cells[event.id] = RecordedCell(event)
        elif isinstance(event, events.Health) and self._table == "health":
            yield self._health(event)
        elif isinstance(event, events.TrialStarted):
            started_unix_ns = self._anchor_unix_ns + event.start_ns
            self._open[event.trial] = event, OpenTrial(event, RunKey(self._run_id, event.repetition)), started_unix_ns
        elif isinstance(event, events.Mark | events.PhaseEnded | events.Actions) and event.trial in self._open:
            started, trial, _ = self._open[event.trial]
            if isinstance(event, events.Actions) and self._table == "actions":
                yield from self._commands(started, event)
            elif isinstance(event, events.Mark):
                trial.mark(event)
            else:
                trial.add(event)
        elif isinstance(event, events.TrialEnded) and event.trial in self._open:
            started, trial, started_unix_ns = self._open.pop(event.trial)
            if self._table == "trials" and (cell := self._cells.get(started.cell)):
                yield self._trial(cell, started, started_unix_ns, trial.closed(event), event)

    def _trial(
        self,
        cell: RecordedCell,
        started: events.TrialStarted,
        started_unix_ns: int,
        trial: RecordedTrial,
        ended: events.TrialEnded,
    ) -> TableRow:
        identity, measures = cell.identity, trial.measures
        ok = ended.outcome == OK
        split = ok and measures.divided
        return (
            self._run_id,
            started.repetition,
            started.trial,
            identity.cell_id,
            identity.substrate,
            identity.variant,
            identity.tier,
            identity.mode,
            identity.concurrency,
            identity.arrival,
            identity.acquire,
            cell.provenance,
            len(trial.durations_ns),
            started.attempt,
            started.warm_up,
            _optional(started.block),
            started.task,
            started.group,
            _optional(started.training_step),
            ended.node,
            started.image,
            _optional(started.image_bytes),
            ended.outcome,
            ended.phase,
            ended.error,
            started_unix_ns,
            measures.start_delay_ns,
            measures.response_ns if has_schedule(identity.arrival) else None,
            measures.create_ns,
            measures.ready_ns,
            measures.preload_ns,
            measures.setup_ns,
            measures.cold_start_ns,
            measures.fresh_episode_ns,
            measures.trajectory_ns,
            measures.held_ns,
            measures.work_ns if split else None,
            measures.dispatch_ns if split else None,
            measures.unsplit_ns if ok else None,
            measures.harness_ns if ok else None,
            measures.queued_ns,
            measures.think_ns,
            measures.cleanup_ns,
            measures.verify_ns,
            trial.sandbox_ns,
            trial.complete,
            measures.wrapper_ns or None if ok else None,
            trial.cause,
        )

    def _commands(self, started: events.TrialStarted, event: events.Actions) -> Iterator[TableRow]:
        count = len(event.duration_ns)
        runs_ns = known_runs(event.duration_ns, event.run_ns)
        optional = (event.think_ns, event.gap_ns, event.exit_code, event.stdout_bytes, event.stderr_bytes)
        thinks, gaps, codes, outs, errs = (values or [0] * count for values in optional)
        cpus_ns = event.cpu_ns or [UNKNOWN] * count
        wrappers_ns = known_wrappers(event.duration_ns, runs_ns, event.wrapper_ns) or [0] * count
        row_columns = (thinks, gaps, event.duration_ns, runs_ns, cpus_ns, codes, outs, errs, wrappers_ns)
        for index, row in enumerate(zip(*row_columns, strict=True), event.first):
            think, gap, duration, run, cpu, code, out, err, wrapper = row
            head = (self._run_id, started.repetition, started.trial, event.step, index, think, gap, duration)
            yield (*head, _optional(run), _optional(cpu), _optional(code), out, err, wrapper or None)

    def _health(self, event: events.Health) -> TableRow:
        return (
            self._run_id,
            self._worker,
            self._anchor_unix_ns + event.at_ns,
            event.lag_p50_ns,
            event.lag_p99_ns,
            event.lag_max_ns,
            event.cpu_permille,
            event.in_flight,
            event.pool_waits,
            _optional(event.floor_ns),
        )


def _optional(value: int) -> int | None:
    return None if value == UNKNOWN else value
