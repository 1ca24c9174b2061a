"""CSV that anybody can write: a row per phase, think time or command, those of one trial together."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import groupby, islice
from pathlib import Path
from typing import ClassVar, Final

from costmodel import events, open_regular
from taxtui.importers.files import unreadable, walk
from taxtui.importers.protocol import (
    CREATE as CREATE_TIME,
)
from taxtui.importers.protocol import (
    GROUP,
    INSTANTS,
    RUN,
    Asked,
    Failure,
    ImportedTrial,
    Skipped,
    Unreadable,
)
from taxtui.importers.protocol import (
    READY as READY_TIME,
)
from taxtui.importers.timeline import BACKWARDS, Timeline
from taxtui.importers.values import MICROSECOND_NS, duration_ns, instant_ns, integer

REQUIRED: Final = ("trial", "phase")
TIMES: Final = ("start", "end", "duration_s", "run_s", "exit_code")
NAMES: Final = ("substrate", "variant", "workload", "task", "image", "group", "node")
NUMBERS: Final = ("image_bytes", "training_step", "attempt", "cpu_milli", "memory_mib", "concurrency")
ENDS: Final = ("outcome", "error")
COLUMNS: Final = (*REQUIRED, *TIMES, *NAMES, *NUMBERS, *ENDS)
"""All columns that mean something; others are left alone."""
KNOWN: Final = frozenset(COLUMNS)

PHASES: Final = (events.CREATE, events.READY, events.SETUP, events.VERIFY, events.CLEANUP)
THINK: Final = "think"
MOST_CHARACTERS: Final = 1 << 20
"""Of one field."""
MOST_LINE: Final = 4 << 20
"""Characters of one line."""
MOST_ROWS: Final = 100_000
"""Limit of one trial, whose rows are in memory together."""


class CsvRow(dict[str, str]):
    """The values of one row by column; a column that is missing or empty has "" and takes no memory."""

    __slots__ = ()

    def __missing__(self, column: str) -> str:
        """The value that is not there."""
        return ""


Line = tuple[int, CsvRow]


class CsvReader:
    """The first row with a name or a number of a trial counts; of its outcome the last."""

    name: ClassVar[str] = "csv"
    summary: ClassVar[str] = "rows with the columns trial, phase, start, end or duration_s; see docs/own-work.md"
    takes_map: ClassVar[bool] = False

    def files(self, folder: Path) -> Iterator[Path]:
        """Every ``.csv`` below a folder."""
        return walk(folder, lambda name: name.endswith(".csv"))

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first line has the columns."""
        first = head.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace").strip()
        return set(REQUIRED) <= {column.strip().strip('"') for column in first.split(",")}

    def trials(self, path: Path, asked: Asked) -> Iterator[ImportedTrial | Skipped]:
        """The trials in the order of the file."""
        csv.field_size_limit(MOST_CHARACTERS)
        seen: set[int] = set()
        try:
            binary = open_regular(path)
        except OSError as error:
            raise unreadable(error) from error
        with TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline="") as file:
            for name, rows in groupby(_rows(file), lambda line: line[1]["trial"]):
                own = list(islice(rows, MOST_ROWS + 1))  # groupby passes over the others one by one
                where = f"line {own[0][0]}"
                if hash(name) in seen:
                    yield Skipped(where, "its trial has ended before: the rows of a trial stand together")
                    continue
                seen.add(hash(name))
                if len(own) > MOST_ROWS:
                    yield Skipped(where, f"its trial has more than {MOST_ROWS:,} rows")
                    continue
                try:
                    yield _trial(own)
                except Unreadable as error:
                    yield Skipped(where, str(error))


def _lines(file: TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := file.readline(MOST_LINE + 1):
        number += 1
        if len(line) > MOST_LINE:
            raise Unreadable(f"line {number} has more than {MOST_LINE:,} characters")
        yield line


def _rows(file: TextIOWrapper) -> Iterator[Line]:
    """Rows with the number of their line. Raises ``Unreadable``: no such columns, or no CSV from somewhere on."""
    reader = csv.reader(_lines(file))
    try:
        columns = [column.strip() for column in next(reader, [])]
        if missing := [column for column in REQUIRED if column not in columns]:
            raise Unreadable(f"it has no column {missing[0]}")
        if not ({"start", "end"} <= set(columns) or "duration_s" in columns):
            raise Unreadable("it has neither the columns start and end nor duration_s")
        for values in reader:
            pairs = zip(columns, values, strict=False)
            row = CsvRow((column, text) for column, value in pairs if column in KNOWN and (text := value.strip()))
            if any(values):
                yield reader.line_num, row
    except csv.Error:
        raise Unreadable(f"it is no CSV from line {reader.line_num} on") from None


def _trial(lines: list[Line]) -> ImportedTrial:
    timeline = Timeline()
    dated = all(_instant(row["start"]) is not None for _, row in lines)
    if not dated:
        timeline.lacks(INSTANTS, "not every row has a start")
    timeline.lacks_zone(*(row["start"] for _, row in lines if _number(row["start"]) is None))
    told = {row["phase"] for _, row in lines}
    for number, row in lines:
        _place(timeline, row, number, dated)
    if timeline.empty:
        raise Unreadable("no row of its trial has a time that can be read")
    for phase, quantity in ((events.CREATE, CREATE_TIME), (events.READY, READY_TIME)):
        if phase not in told:
            timeline.lacks(quantity, f"no rows with the phase {phase}")
    if any(row["phase"] == events.ACTION and not row["run_s"] for _, row in lines) or events.ACTION not in told:
        timeline.lacks(RUN, "not every action has a run_s: dispatch and work are one")

    def first(column: str) -> str:
        return next((row[column] for _, row in lines if row[column]), "")

    def count(column: str) -> int | None:
        return integer(first(column), 1 << 60)

    if not first("group"):
        timeline.lacks(GROUP, "no column group")
    failure = _failure([row for _, row in lines])
    times = timeline.times()
    training_step, image_bytes = count("training_step"), count("image_bytes")
    return ImportedTrial(
        **times,
        dated=dated,
        failure=failure,
        resolution_ns=MICROSECOND_NS,
        substrate=first("substrate"),
        variant=first("variant"),
        cpu_milli=count("cpu_milli") or 0,
        memory_mib=count("memory_mib") or 0,
        workload=(first("workload"),),
        concurrency=count("concurrency") or 0,
        task=first("task"),
        image=first("image"),
        image_bytes=events.UNKNOWN if image_bytes is None else image_bytes,
        group=first("group"),
        training_step=events.UNKNOWN if training_step is None else training_step,
        attempt=count("attempt") or 0,
        node=first("node"),
    )


def _place(timeline: Timeline, row: CsvRow, number: int, dated: bool) -> None:
    """One row; what cannot be read of it is said."""
    phase = row["phase"]
    if phase not in (*PHASES, THINK, events.ACTION):
        known = ", ".join((*PHASES, THINK, events.ACTION))
        raise Unreadable(f"the phase in line {number} is none of {known}")
    took_ns = duration_ns(_number(row["duration_s"]))
    start_ns, end_ns = _instant(row["start"]), _instant(row["end"])
    if start_ns is not None and end_ns is not None and end_ns < start_ns:
        timeline.lacks(phase, BACKWARDS, partly=True)
        return
    if not dated:
        took_ns = took_ns if took_ns is not None or start_ns is None or end_ns is None else end_ns - start_ns
        start_ns = timeline.cursor_ns
        end_ns = None
    if end_ns is None and start_ns is not None and took_ns is not None:
        end_ns = start_ns + took_ns
    why = "some rows have no end and no duration_s"
    if phase == THINK:
        timeline.think(start_ns, end_ns, why)
    elif phase == events.ACTION:
        run_ns, exit_code = duration_ns(_number(row["run_s"])), integer(row["exit_code"], 1 << 31)
        timeline.action(
            start_ns,
            end_ns,
            why,
            run_ns=events.UNKNOWN if run_ns is None else run_ns,
            exit_code=events.UNKNOWN if exit_code is None else exit_code,
        )
    else:
        timeline.phase(phase, start_ns, end_ns, why)


def _failure(rows: list[CsvRow]) -> Failure | None:
    outcome = next((row["outcome"] for row in reversed(rows) if row["outcome"]), "")
    error = next((row["error"] for row in reversed(rows) if row["error"]), "")
    if outcome in (events.TIMEOUT, events.CANCELLED, events.FAILED) or (error and outcome != events.OK):
        phase = rows[-1]["phase"]
        return Failure(
            error or "Failed", events.ACTION if phase == THINK else phase, outcome if outcome != "" else events.FAILED
        )
    return None


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _instant(value: str) -> int | None:
    told = _number(value)
    return instant_ns(value if told is None else told)
