"""``taxtui export``: a recording's data for other programs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from taxtui.commands import new_file
from taxtui.errors import UsageError
from taxtui.export import BY_NAME, FORMATS, NAMES

TABLES = ("trials", "actions", "health")


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
    """Take the data away: trials, commands and the runner's health as rows, spans or metrics.

    Durations are in nanoseconds, but for Prometheus, which takes seconds. docs/columns.md has every column.
    """
    from taxtui.commands.opening import located

    form = _format(form, out)
    item = BY_NAME[form]
    if table is not None and not item.tables:
        raise UsageError(f"--table does not go with --format {form}", fix="it always holds the whole recording")
    if item.binary and out is None and sys.stdout.isatty():
        raise UsageError(f"{form} is not for a terminal", fix="name a file with -o")
    pieces = item.pieces([Path(located(name)) for name in recordings], table or TABLES[0])
    if out is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    else:
        new_file.write(pieces, out, "-o")


def _format(form: str | None, out: Path | None) -> str:
    """The format that was asked for, by ``--format`` or by the name of the file.

    Raises ``UsageError``: they contradict each other, or the name ends as no format's does.
    """
    ending = "" if out is None else out.suffix.lower()
    fitting = [item.name for item in FORMATS if ending in item.endings]
    if form is not None:
        if fitting and form not in fitting:
            raise UsageError(
                f"{out} is a name for {fitting[0]}, not for {form}", fix=f"drop --format {form}, or rename it"
            )
        return form
    if ending and not fitting:
        raise UsageError(f"{out}: {ending} is the ending of no format", fix=f"add --format: {', '.join(NAMES)}")
    return fitting[0] if fitting else NAMES[0]
