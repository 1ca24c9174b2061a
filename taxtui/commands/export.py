"""``taxtui export``: the data of recordings for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from taxtui.commands.files import find_recording, write_new_file
from taxtui.errors import UsageError
from taxtui.export import BY_NAME, FORMATS, NAMES

TABLES: Final = ("trials", "actions")


@click.command("export", epilog="\n".join(f"{item.name}: {item.about}." for item in FORMATS))
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option(
    "--format", "form", type=click.Choice(NAMES), help=f"Output format.  [by the name of -o, else {NAMES[0]}]"
)
@click.option("--table", type=click.Choice(TABLES), help="Rows of csv, jsonl and parquet.  [default: trials]")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to a new file.  [standard output]",
)
def command(recordings: tuple[str, ...], form: str | None, table: str | None, out: Path | None) -> None:
    """Export trials and commands as rows, spans or metrics.

    Durations are in nanoseconds; Prometheus metrics are in seconds. docs/columns.md has every column.
    """
    form = _format(form, out)
    item = BY_NAME[form]
    if table is not None and not item.tables:
        raise UsageError(f"--table does not go with --format {form}", fix="it always holds the whole recording")
    if item.binary and out is None and sys.stdout.isatty():
        raise UsageError(f"{form} is not for a terminal", fix="name a file with -o")
    pieces = item.pieces([find_recording(name) for name in recordings], table or TABLES[0])
    if out is not None:
        write_new_file(pieces, out, "-o")
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _format(form: str | None, out: Path | None) -> str:
    """Return the format by ``--format``, else by the ending of the file's name.

    Raises:
        UsageError: format and ending contradict each other, or the ending is unknown.
    """
    ending = "" if out is None else out.suffix.lower()
    matching = [item.name for item in FORMATS if ending in item.endings]
    if form is not None:
        if matching and form not in matching:
            fix = f"drop --format {form}, or rename it"
            raise UsageError(f"{out} is a name for {matching[0]}, not for {form}", fix=fix)
        return form
    if ending and not matching:
        raise UsageError(f"{out}: {ending} is the ending of no format", fix=f"add --format: {', '.join(NAMES)}")
    return matching[0] if matching else NAMES[0]
