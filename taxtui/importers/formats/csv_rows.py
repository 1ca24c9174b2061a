"""CSV of any origin: a row per phase, model time or command; the rows of a trial are adjacent."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import ClassVar, Final

from costmodel import events, too_large
from taxtui.importers.files import MOST_BYTES, Unreadable, lines
from taxtui.importers.protocol import Reader, Skipped, trial_or_skipped
from taxtui.importers.timeline import Timeline
from taxtui.importers.trial import PHASES, TIMES, Failure, ImportedTrial, Quantity
from taxtui.importers.values import duration_ns, instant_ns, integer

REQUIRED: Final = ("trial", "phase")
COLUMNS: Final = (
    *REQUIRED,
    *("start", "end", "duration_s", "run_s", "exit_code"),
    *("substrate", "variant", "workload", "task", "image", "group", "node"),
    *("image_bytes", "training_step", "attempt", "cpu_milli", "memory_mib", "concurrency"),
    *("outcome", "error"),
)
"""Supported columns; other columns are ignored."""
OUTCOMES: Final = (events.OK, events.FAILED, events.TIMEOUT, events.CANCELLED)
MOST_ROWS: Final = 100_000
"""Limit of a trial: its rows are in memory together."""

CsvRow = dict[str, str]
"""The values of a row by column: a missing column is ""."""


class CsvReader(Reader):
    """The first value of a trial's column counts; of ``outcome`` and ``error`` the last."""

    name: ClassVar[str] = "csv"
    file_names: ClassVar[tuple[str, ...]] = ("*.csv",)

    def recognises(self, path: Path, head: bytes) -> bool:
        first = head.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace").strip()
        return set(REQUIRED) <= {column.strip().strip('"') for column in first.split(",")}

    def trials(self, path: Path) -> Iterator[ImportedTrial | Skipped]:
        ended: set[int] = set()
        for name, group in groupby(_rows(path), lambda row: row[1]["trial"]):
            numbers, rows = zip(*islice(group, MOST_ROWS + 1), strict=True)  # groupby skips the remaining rows
            where = f"line {numbers[0]}"
            if hash(name) in ended:
                yield Skipped(where, "the rows of a trial are not adjacent")
            elif len(rows) > MOST_ROWS:
                yield Skipped(where, f"the trial has more than {MOST_ROWS:,} rows")
            else:
                yield trial_or_skipped(where, _trial, rows, numbers)
            ended.add(hash(name))


def _rows(path: Path) -> Iterator[tuple[int, CsvRow]]:
    """Yield rows with the number of their line. Raises ``Unreadable``: a column is missing, or a line is no CSV."""
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, line in lines(path):
            if len(line) > MOST_BYTES:
                raise Unreadable(f"line {number} is {too_large(MOST_BYTES)}")
            yield from line.decode("utf-8-sig", "replace").split("\r")

    csv.field_size_limit(MOST_BYTES)
    reader = csv.reader(texts())
    try:
        columns = [column.strip() for column in next(reader, [])]
        if missing := [column for column in REQUIRED if column not in columns]:
            raise Unreadable(f"no column {missing[0]}")
        if not ({"start", "end"} <= set(columns) or "duration_s" in columns):
            raise Unreadable("neither the columns start and end nor duration_s")
        for values in filter(any, reader):
            row = {column: value.strip() for column, value in zip(columns, values, strict=False)}
            yield number, {column: row.get(column, "") for column in COLUMNS}
    except csv.Error:
        raise Unreadable(f"no CSV from line {number} on") from None


def _trial(rows: Sequence[CsvRow], numbers: Sequence[int]) -> ImportedTrial:
    timeline = Timeline()
    # A row without start and duration has no time.
    dated = all(_instant(row["start"]) is not None for row in rows if row["duration_s"])
    if not dated:
        timeline.lacks(Quantity.INSTANTS, "not every row has a start")
    timeline.lacks_zone(*(row["start"] for row in rows if _number(row["start"]) is None))
    for number, row in zip(numbers, rows, strict=True):
        _add(timeline, row, number, dated)
    if timeline.empty:
        raise Unreadable("no row of the trial has a valid time")
    kinds = {row["phase"] for row in rows}
    for quantity in (Quantity.CREATE, Quantity.READY):
        if quantity not in kinds:
            timeline.lacks(quantity, f"no rows with the phase {quantity}")
    if any(row["phase"] == events.ACTION and not row["run_s"] for row in rows) or events.ACTION not in kinds:
        timeline.lacks(Quantity.RUN, "not every action has a run_s: dispatch and command time are undivided")

    def first(column: str) -> str:
        return next((row[column] for row in rows if row[column]), "")

    def count(column: str, missing: int = 0) -> int:
        value = integer(_number(first(column)), 1 << 60)
        return missing if value is None else value

    if not first("group"):
        timeline.lacks(Quantity.GROUP, "no column group")
    return ImportedTrial(
        **timeline.times(),
        dated=dated,
        failure=_failure(rows),
        substrate=first("substrate"),
        variant=first("variant"),
        cpu_milli=count("cpu_milli"),
        memory_mib=count("memory_mib"),
        workload=(first("workload"),),
        concurrency=count("concurrency"),
        task=first("task"),
        image=first("image"),
        image_bytes=count("image_bytes", events.UNKNOWN),
        group=first("group"),
        training_step=count("training_step", events.UNKNOWN),
        attempt=count("attempt"),
        node=first("node"),
    )


def _add(timeline: Timeline, row: CsvRow, number: int, dated: bool) -> None:
    """Add a row; report unreadable times."""
    kind = row["phase"]
    if kind not in TIMES:
        raise Unreadable(f"the phase in line {number} is none of {', '.join(TIMES)}")
    took_ns = duration_ns(_number(row["duration_s"]))
    start_ns, end_ns = _instant(row["start"]), _instant(row["end"])
    if start_ns is not None and end_ns is not None and (dated or took_ns is None):
        took_ns = end_ns - start_ns
    if not dated:
        start_ns = timeline.latest_ns
    end_ns = None if start_ns is None or took_ns is None else start_ns + took_ns
    timeline.add(
        PHASES.get(kind, kind),
        start_ns,
        end_ns,
        "some rows have no end and no duration_s",
        run_ns=duration_ns(_number(row["run_s"])),
        exit_code=integer(_number(row["exit_code"]), 1 << 31),
    )


def _failure(rows: Sequence[CsvRow]) -> Failure | None:
    error = next((row["error"] for row in reversed(rows) if row["error"]), "")
    outcomes = (row["outcome"] for row in reversed(rows) if row["outcome"])
    outcome = next(outcomes, events.FAILED if error else events.OK)
    if outcome not in OUTCOMES:
        raise Unreadable(f"the outcome is none of {', '.join(OUTCOMES)}")
    phase = PHASES.get(rows[-1]["phase"], events.ACTION)
    return None if outcome == events.OK else Failure(error or "Failed", phase, outcome)


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _instant(value: str) -> int | None:
    seconds = _number(value)
    return instant_ns(value if seconds is None else seconds)
