"""``taxtui export``: the data of recordings for other programs, as CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from costmodel import Follower, TableRow, events, table_columns, table_rows
from taxtui.commands.files import find_recording, write_new_file
from taxtui.errors import RecordingError, UsageError
from taxtui.report.formats.csv_rows import harmless
from taxtui.terminal_text import clean

TABLES: Final = ("trials", "actions")
FORMATS: Final = ("csv", "jsonl")
MOST_ROWS, BYTES_A_ROW = 10_000, 4
"""Limit of rows in a file: a base, and a row per number of bytes. A command of 66 µs takes more bytes."""


@click.command("export")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help=f"Output format.  [by the name of -o, else {FORMATS[0]}]"
)
@click.option("--table", type=click.Choice(TABLES), default=TABLES[0], show_default=True, help="Kind of rows.")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to a new file.  [standard output]",
)
def command(recordings: tuple[str, ...], form: str | None, table: str, out: Path | None) -> None:
    """Export trials or commands as rows, with durations in nanoseconds.

    An unknown value is empty in CSV and null in JSON lines. docs/columns.md has every column.
    """
    suffix = "" if out is None else out.suffix.lower()
    if form is None and suffix not in ("", ".csv", ".jsonl"):
        raise UsageError(f"{out}: {suffix} is the ending of no format", fix=f"add --format: {', '.join(FORMATS)}")
    lines = suffix == ".jsonl"
    paths = [find_recording(name) for name in recordings]
    _refuse_repeated_runs(paths)
    pieces = json_pieces(paths, table) if (form or FORMATS[lines]) == "jsonl" else csv_pieces(paths, table)
    if out is not None:
        write_new_file(pieces, out, "-o")
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _refuse_repeated_runs(paths: Sequence[Path]) -> None:
    """Raise ``RecordingError`` where two files hold the same run, before any row is written."""
    names: dict[str, Path] = {}
    for path in paths:
        with Follower(path) as follower:
            run_id = next((event.run_id for event in follower.poll(1) if isinstance(event, events.Header)), "")
        if run_id in names:
            raise RecordingError(f"{path} and {names[run_id]} hold the same run", fix="give it once")
        names[run_id] = path


def csv_pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Yield a head and a line per row. Text like a formula gets an apostrophe in front. Raises as ``clean_rows``."""
    yield _csv_line(column.name for column in table_columns(table))
    for row in clean_rows(paths, table):
        yield _csv_line(map(_csv_value, row))


def _csv_line(values: Iterable[int | str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerow(values)
    return line.getvalue().encode()


def _csv_value(value: int | str | bool | None) -> int | str:
    if isinstance(value, bool):
        return str(value).lower()
    return harmless(value) if isinstance(value, str) else "" if value is None else value


def json_pieces(paths: Sequence[Path], table: str) -> Iterator[bytes]:
    """Yield an object per line. Raises as ``clean_rows``."""
    names = [column.name for column in table_columns(table)]
    for row in clean_rows(paths, table):
        yield msgspec.json.encode(dict(zip(names, row, strict=True))) + b"\n"


def clean_rows(paths: Sequence[Path], table: str) -> Iterator[TableRow]:
    """Yield the rows of a table without control characters: each becomes a visible mark.

    Raises ``SourceError``, and ``RecordingError`` for more rows than a recording of this size may have.
    """
    for path in paths:
        limit = MOST_ROWS + path.stat().st_size // BYTES_A_ROW
        for number, row in enumerate(table_rows([path], table), 1):
            if number > limit:
                raise RecordingError(
                    f"{path}: more commands than {limit:,}, the limit of a recording of this size",
                    fix="export trials alone: export --table trials, or costmodel.frame",
                )
            yield tuple(clean(value) if isinstance(value, str) else value for value in row)
