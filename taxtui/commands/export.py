"""``taxtui export``: a recording's data for other programs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from taxtui.commands import new_file
from taxtui.errors import UsageError
from taxtui.export import BY_NAME, FORMATS, NAMES

TABLES = ("trials", "actions", "health")


@click.command("export", epilog="\n".join(f"{one.name}: {one.about}." for one in FORMATS))
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
@click.option("--table", type=click.Choice(TABLES), help="Which rows: csv, jsonl and parquet.  [default: trials]")
@click.option(
    "-o", "out", type=click.Path(path_type=Path, dir_okay=False), help="A new file; without it standard output."
)
def command(recordings: tuple[str, ...], form: str, table: str | None, out: Path | None) -> None:
    """Take the data away: trials, commands and the runner's health as rows, spans or metrics.

    Durations are in nanoseconds, but for Prometheus, which takes seconds. docs/export.md has every column.
    """
    from taxtui.commands.opening import located
    from taxtui.export import many_files

    one = BY_NAME[form]
    if table is not None and not one.tables:
        raise UsageError(f"--table does not go with --format {form}", fix="it always holds the whole recording")
    if one.binary and out is None and sys.stdout.isatty():
        raise UsageError(f"{form} is not for a terminal", fix="name a file with -o")
    pieces = many_files.pieces(form, [Path(located(name)) for name in recordings], table or TABLES[0])
    if out is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    else:
        new_file.write(pieces, out, "-o")
