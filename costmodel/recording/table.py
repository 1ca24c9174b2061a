"""A recording as tables of plain values, for spreadsheets, pandas, polars and SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from costmodel.errors import SourceError
from costmodel.recording import events
from costmodel.recording.breakdown import UNKNOWN, has_schedule, known_parts
from costmodel.recording.follower import Follower
from costmodel.recording.reader import OpenTrial, TrialReader

Value = int | str | bool | None
TableRow = tuple[Value, ...]


class FrameColumn(NamedTuple):
    """A column, with the unit in its name. None: unknown."""

    name: str
    about: str
    source: str | Callable[[Any], Value] = ""  # attribute of the row's source, or a function of it; "": the name


def _of_success(name: str, *, divided: bool = False) -> Callable[[OpenTrial], int | None]:
    """Return a getter of a measure; None in a failure, and with ``divided`` where a command is undivided."""
    read = attrgetter(f"trial.measures.{name}")
    return lambda row: read(row) if row.trial.ok and (row.trial.measures.divided or not divided) else None


_wrapper = _of_success("wrapper_ns")
_TRIAL: Final = (
    FrameColumn("run_id", "id of the measurement; sorts by time", "trial.run.run_id"),
    FrameColumn("repetition", "from 0", "started.repetition"),
    FrameColumn("trial", "number within the measurement", "started.trial"),
)
COLUMNS: Final[dict[str, tuple[FrameColumn, ...]]] = {
    "trials": (
        *_TRIAL,
        FrameColumn("cell", "digest; trials of equal cells pool", "cell.identity.cell_id"),
        FrameColumn("substrate", "", "cell.identity.substrate"),
        FrameColumn("variant", "runtime, transport or instance type", "cell.identity.variant"),
        FrameColumn("tier", "", "cell.identity.tier"),
        FrameColumn("mode", "exec or session", "cell.identity.mode"),
        FrameColumn("concurrency", "trials at a time", "cell.identity.concurrency"),
        FrameColumn("arrival", "start of trials", "cell.identity.arrival"),
        FrameColumn("acquire", "create, reset, pool:NAME …", "cell.identity.acquire"),
        FrameColumn("provenance", "measured, stand_in or imported", "cell.provenance"),
        FrameColumn("actions", "finished actions", lambda row: len(row.trial.durations_ns)),
        FrameColumn("attempt", "from 0", "started.attempt"),
        FrameColumn("warm_up", "not counted", "started.warm_up"),
        FrameColumn("block", "consecutive trials of a cell", lambda row: _optional(row.started.block)),
        FrameColumn("task", "digest of the prompt or problem", "started.task"),
        FrameColumn("group", "digest; rollouts of the same prompt", "started.group"),
        FrameColumn("training_step", "", lambda row: _optional(row.started.training_step)),
        FrameColumn("node", "digest of the machine", "end.node"),
        FrameColumn("image", "digest, where trials of a cell differ", "started.image"),
        FrameColumn("image_bytes", "", lambda row: _optional(row.started.image_bytes)),
        FrameColumn("outcome", "ok, failed, timeout, cancelled or interrupted", "end.outcome"),
        FrameColumn("phase", "phase of the failure", "end.phase"),
        FrameColumn("error", "class of the error", "end.error"),
        FrameColumn("start_unix_ns", "first create request"),
        FrameColumn("late_ns", "start delay", "trial.measures.start_delay_ns"),
        FrameColumn(
            "response_ns",
            "start delay + occupied time",
            lambda row: row.trial.measures.response_ns if has_schedule(row.cell.identity.arrival) else None,
        ),
        FrameColumn("create_ns", "", "trial.measures.create_ns"),
        FrameColumn("ready_ns", "", "trial.measures.ready_ns"),
        FrameColumn("preload_ns", "", "trial.measures.preload_ns"),
        FrameColumn("setup_ns", "phase", "trial.measures.setup_ns"),
        FrameColumn("cold_start_ns", "create and ready", "trial.measures.cold_start_ns"),
        FrameColumn("fresh_episode_ns", "until the first action", "trial.measures.fresh_episode_ns"),
        FrameColumn("trajectory_ns", "held − queued − think", "trial.measures.trajectory_ns"),
        FrameColumn("held_ns", "occupied time", "trial.measures.held_ns"),
        FrameColumn("work_ns", "in-sandbox time of set-up and actions", _of_success("work_ns", divided=True)),
        FrameColumn("dispatch_ns", "dispatch of set-up and actions", _of_success("dispatch_ns", divided=True)),
        FrameColumn("unsplit_ns", "undivided command time", _of_success("unsplit_ns")),
        FrameColumn("harness_ns", "runner gap", _of_success("harness_ns")),
        FrameColumn("queued_ns", "throttled", "trial.measures.queued_ns"),
        FrameColumn("think_ns", "model time", "trial.measures.think_ns"),
        FrameColumn("cleanup_ns", "", "trial.measures.cleanup_ns"),
        FrameColumn("verify_ns", "the task's own tests", "trial.measures.verify_ns"),
        FrameColumn("sandbox_ns", "billed life without clean-up", "trial.sandbox_ns"),
        FrameColumn("complete", "no command is missing", "trial.complete"),
        FrameColumn("wrapper_ns", "wrapper time of set-up and actions", lambda row: _wrapper(row) or None),
        FrameColumn("cause", "of the failure or limit", "trial.cause"),
    ),
    "actions": (
        *_TRIAL,
        FrameColumn("step", "preload, setup or action"),
        FrameColumn("index", "within the step"),
        FrameColumn("think_ns", "model time before the command"),
        FrameColumn("gap_ns", "runner gap before the command"),
        FrameColumn("duration_ns", "submission to result"),
        FrameColumn("run_ns", "in-sandbox time"),
        FrameColumn("cpu_ns", "CPU time of the command"),
        FrameColumn("exit_code", ""),
        FrameColumn("stdout_bytes", ""),
        FrameColumn("stderr_bytes", ""),
        FrameColumn("wrapper_ns", "wrapper time"),
    ),
}
"""Table → columns in order; docs/measurement.md defines the durations."""


def frame(*paths: str | PathLike[str], table: str = "trials") -> dict[str, list[Value]]:
    """Return a table of one or more recordings as columns: ``pandas.DataFrame(frame(path))``.

    Raises:
        SourceError: a file is unreadable or damaged, or the table is unknown.
    """
    columns, rows = table_columns(table), list(table_rows(paths, table))
    return {column.name: [row[place] for row in rows] for place, column in enumerate(columns)}


def table_columns(table: str) -> tuple[FrameColumn, ...]:
    """Return the columns of a table. Raises ``SourceError`` for an unknown table."""
    if table not in COLUMNS:
        raise SourceError(f"there is no table {table!r}; there are {', '.join(COLUMNS)}")
    return COLUMNS[table]


def table_rows(paths: Iterable[str | PathLike[str]], table: str = "trials") -> Iterator[TableRow]:
    """Yield the rows of a table with the values of ``table_columns``; memory is that of one trial.

    Trials come in the order of their ends; unfinished trials are left out. Raises as ``frame``.
    """
    sources = [column.source or column.name for column in table_columns(table)]
    read = [attrgetter(source) if isinstance(source, str) else source for source in sources]
    for path in map(Path, paths):
        reader = TrialReader()
        with Follower(path) as follower:
            while batch := follower.poll():
                for event in batch:
                    if table == "actions" and isinstance(event, events.Actions) and event.trial in reader.open:
                        yield from _commands(reader.run_id, reader.open[event.trial].started, event)
                    ended = reader.apply(event)
                    if table == "trials" and ended is not None:
                        yield tuple(get(ended) for get in read)
            follower.finish()


def _commands(run_id: str, started: events.TrialStarted, event: events.Actions) -> Iterator[TableRow]:
    count, empty = len(event.duration_ns), events.column
    runs_ns, wrappers_ns = known_parts(event.duration_ns, event.run_ns, event.wrapper_ns)
    optional = (runs_ns, empty(event.cpu_ns, count, UNKNOWN), empty(event.exit_code, count))
    columns = (
        *(empty(event.think_ns, count), empty(event.gap_ns, count), event.duration_ns),
        *([_optional(value) for value in values] for values in optional),
        *(empty(event.stdout_bytes, count), empty(event.stderr_bytes, count)),
        [wrapper_ns or None for wrapper_ns in wrappers_ns],
    )
    for index, row in enumerate(zip(*columns, strict=True), event.first):
        yield (run_id, started.repetition, started.trial, event.step, index, *row)


def _optional(value: int) -> int | None:
    return None if value == UNKNOWN else value
