"""CSV of any origin: a row per phase, model time or command; the rows of a trial are adjacent."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import groupby, islice
from pathlib import Path
from typing import ClassVar, Final

from costmodel import events, open_regular
from taxtui.importers.files import Unreadable, unreadable
from taxtui.importers.protocol import (
    PHASES,
    TIMES,
    Failure,
    ImportedTrial,
    Quantity,
    Reader,
    ReaderOptions,
    Skipped,
    trial_or_skipped,
)
from taxtui.importers.timeline import BACKWARDS, Timeline
from taxtui.importers.values import MICROSECOND_NS, duration_ns, instant_ns, integer

REQUIRED: Final = ("trial", "phase")
COLUMNS: Final = frozenset(
    (
        *REQUIRED,
        *("start", "end", "duration_s", "run_s", "exit_code"),
        *("substrate", "variant", "workload", "task", "image", "group", "node"),
        *("image_bytes", "training_step", "attempt", "cpu_milli", "memory_mib", "concurrency"),
        *("outcome", "error"),
    )
)
"""Supported columns; other columns are ignored."""
MOST_CHARACTERS: Final = 1 << 20
"""Limit of a field."""
MOST_LINE: Final = 4 << 20
"""Limit of a line, in characters."""
MOST_ROWS: Final = 100_000
"""Limit of a trial: its rows are in memory together."""


class CsvRow(dict[str, str]):
    """The values of a row by column, without empty values: a missing column is ""."""

    __slots__ = ()

    def __missing__(self, column: str) -> str:
        return ""


NumberedRow = tuple[int, CsvRow]


class CsvReader(Reader):
    """The first value of a trial's column counts; of ``outcome`` and ``error`` the last."""

    name: ClassVar[str] = "csv"
    summary: ClassVar[str] = "rows with the columns trial, phase, start, end or duration_s; see docs/own-work.md"
    file_names: ClassVar[tuple[str, ...]] = ("*.csv",)

    def recognises(self, path: Path, head: bytes) -> bool:
        first = head.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace").strip()
        return set(REQUIRED) <= {column.strip().strip('"') for column in first.split(",")}

    def trials(self, path: Path, options: ReaderOptions) -> Iterator[ImportedTrial | Skipped]:
        csv.field_size_limit(MOST_CHARACTERS)
        ended: set[int] = set()
        try:
            binary = open_regular(path)
        except OSError as error:
            raise unreadable(error) from error
        with TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline="") as file:
            for name, group in groupby(_rows(file), lambda row: row[1]["trial"]):
                rows = list(islice(group, MOST_ROWS + 1))  # groupby skips the remaining rows
                where = f"line {rows[0][0]}"
                if hash(name) in ended:
                    yield Skipped(where, "the rows of a trial are not adjacent")
                    continue
                ended.add(hash(name))
                if len(rows) > MOST_ROWS:
                    yield Skipped(where, f"the trial has more than {MOST_ROWS:,} rows")
                    continue
                yield trial_or_skipped(where, _trial, rows)


def _lines(file: TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := file.readline(MOST_LINE + 1):
        number += 1
        if len(line) > MOST_LINE:
            raise Unreadable(f"line {number} has more than {MOST_LINE:,} characters")
        yield line


def _rows(file: TextIOWrapper) -> Iterator[NumberedRow]:
    """Yield rows with the number of their line. Raises ``Unreadable``: a column is missing, or a line is no CSV."""
    reader = csv.reader(_lines(file))
    try:
        columns = [column.strip() for column in next(reader, [])]
        if missing := [column for column in REQUIRED if column not in columns]:
            raise Unreadable(f"no column {missing[0]}")
        if not ({"start", "end"} <= set(columns) or "duration_s" in columns):
            raise Unreadable("neither the columns start and end nor duration_s")
        for values in reader:
            pairs = zip(columns, values, strict=False)
            row = CsvRow((column, text) for column, value in pairs if column in COLUMNS and (text := value.strip()))
            if any(values):
                yield reader.line_num, row
    except csv.Error:
        raise Unreadable(f"no CSV from line {reader.line_num} on") from None


def _trial(rows: list[NumberedRow]) -> ImportedTrial:
    timeline = Timeline()
    dated = all(_instant(row["start"]) is not None for _, row in rows)
    if not dated:
        timeline.lacks(Quantity.INSTANTS, "not every row has a start")
    timeline.lacks_zone(*(row["start"] for _, row in rows if _number(row["start"]) is None))
    for number, row in rows:
        _add(timeline, row, number, dated)
    if timeline.empty:
        raise Unreadable("no row of the trial has a valid time")
    kinds = {row["phase"] for _, row in rows}
    for quantity in (Quantity.CREATE, Quantity.READY):
        if quantity not in kinds:
            timeline.lacks(quantity, f"no rows with the phase {quantity}")
    if any(row["phase"] == events.ACTION and not row["run_s"] for _, row in rows) or events.ACTION not in kinds:
        timeline.lacks(Quantity.RUN, "not every action has a run_s: dispatch and command time are undivided")

    def first(column: str) -> str:
        return next((row[column] for _, row in rows if row[column]), "")

    def count(column: str, missing: int = 0) -> int:
        value = integer(first(column), 1 << 60)
        return missing if value is None else value

    if not first("group"):
        timeline.lacks(Quantity.GROUP, "no column group")
    return ImportedTrial(
        **timeline.times(),
        dated=dated,
        failure=_failure([row for _, row in rows]),
        resolution_ns=MICROSECOND_NS,
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
    if start_ns is not None and end_ns is not None and end_ns < start_ns:
        timeline.lacks(kind, BACKWARDS, partly=True)
        return
    if not dated:
        took_ns = took_ns if took_ns is not None or start_ns is None or end_ns is None else end_ns - start_ns
        start_ns = timeline.cursor_ns
        end_ns = None
    if end_ns is None and start_ns is not None and took_ns is not None:
        end_ns = start_ns + took_ns
    why = "some rows have no end and no duration_s"
    if kind == Quantity.THINK:
        timeline.think(start_ns, end_ns, why)
    elif kind == events.ACTION:
        run_ns, exit_code = duration_ns(_number(row["run_s"])), integer(row["exit_code"], 1 << 31)
        timeline.action(
            start_ns,
            end_ns,
            why,
            run_ns=events.UNKNOWN if run_ns is None else run_ns,
            exit_code=events.UNKNOWN if exit_code is None else exit_code,
        )
    else:
        timeline.phase(PHASES[kind], start_ns, end_ns, why)


def _failure(rows: list[CsvRow]) -> Failure | None:
    outcome = next((row["outcome"] for row in reversed(rows) if row["outcome"]), "")
    error = next((row["error"] for row in reversed(rows) if row["error"]), "")
    if outcome in (events.TIMEOUT, events.CANCELLED, events.FAILED) or (error and outcome != events.OK):
        phase = PHASES.get(rows[-1]["phase"], events.ACTION)
        return Failure(error or "Failed", phase, outcome or events.FAILED)
    return None


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _instant(value: str) -> int | None:
    seconds = _number(value)
    return instant_ns(value if seconds is None else seconds)
