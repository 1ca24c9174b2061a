"""``taxtui import``: a recording from the logs of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from costmodel import load_prices
from taxtui.commands.progress import progress
from taxtui.errors import RecordingError, UsageError
from taxtui.importers import registry
from taxtui.importers.importing import ImportResult, import_files, reader_for
from taxtui.importers.trial import TIMES
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from taxtui.importers.protocol import Reader


@click.command("import")
@click.argument("words", nargs=-1, required=True, metavar="[FORMAT] PATH...")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="New file for the recording.",
)
@click.option("--map", "spans", multiple=True, metavar="SPAN=PHASE", help=f"otlp: {', '.join(TIMES)} by span name.")
@click.option("--keep-names", is_flag=True, help="Keep names of tasks, images, agents, groups; else digests of them.")
@click.option("--strict", is_flag=True, help="Refuse an unreadable file, instead of leaving the file out.")
@click.option("--summary", is_flag=True, help="Print `report --table summary` of the recording.")
@click.option("--prices", metavar="FILE", help="Price sheet of the summary.")
@click.pass_context
def command(
    context: click.Context,
    /,
    words: tuple[str, ...],
    out: Path,
    spans: tuple[str, ...],
    keep_names: bool,
    strict: bool,
    summary: bool,
    prices: str | None,
) -> None:
    """Make a recording of the logs of other tools: files, or folders of files.

    FORMAT is guessed from the content if left out. Prompts, outputs, commands, paths and keys are never copied.
    Missing values stay unknown and are listed. docs/own-work.md has the content of each format.
    """
    if prices is not None and not summary:
        raise UsageError("--prices needs --summary", fix=f"later: taxtui project {out} --prices {prices}")
    if prices is not None:
        load_prices(prices)  # refused before anything is read
    name, paths = _format_and_paths(words)
    phases = _span_phases(spans)
    reader = reader_for(name, paths)
    if phases:
        if getattr(reader, "span_phases", None) is None:  # a third-party reader may have no such attribute
            raise UsageError(f"{reader.name} has no spans: drop --map")
        reader.span_phases = phases
    with progress("reading") as report_share:
        result = import_files(
            reader,
            paths,
            out,
            keep_names=keep_names,
            strict=strict,
            progress=report_share,
        )
    for line in _lines(reader, result, out):
        click.echo(clean(line), err=True)
    if summary:
        from taxtui.commands.report import command as report

        try:
            context.invoke(report, recordings=(str(out),), name="summary", prices=prices)
        except RecordingError as error:  # the recording is written, and too large for a table
            click.echo(f"taxtui: no summary: {clean(str(error))}", err=True)


def _format_and_paths(words: Sequence[str]) -> tuple[str | None, list[Path]]:
    """Return the format, if the first word is one, and the paths. Raises ``UsageError``: an unknown format."""
    first, *rest = words
    if rest and (first in registry.names() or not Path(first).exists()):
        registry.load(first)  # refuses an unknown format, with the nearest name
        return first, [Path(name) for name in rest]
    return None, [Path(name) for name in words]


def _span_phases(spans: Sequence[str]) -> dict[str, str]:
    """Return the phase of each span name of ``--map``. Raises ``UsageError``: a bad word, or two phases of a name."""
    phases: dict[str, str] = {}
    for span in spans:
        name, equals, phase = span.rpartition("=")
        if not (name and equals and phase in TIMES):
            raise UsageError(f"--map {span}: not NAME=PHASE", fix=f"PHASE is one of {', '.join(TIMES)}")
        if phases.setdefault(name, phase) != phase:
            raise UsageError(f"--map {name} is {phases[name]} and {phase}")
    return phases


def _lines(reader: Reader, result: ImportResult, out: Path) -> list[str]:
    """Return the result of an import as lines: outcomes, limits and unknown values, and skipped parts."""
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(result.outcomes.items()))
    trials, files = _counted(result.trials, "trial"), _counted(result.files, "file")
    lines = [f"{out}: {trials} of {reader.name} from {files} ({outcomes})"]
    lines += [f"  {line}" for line in (*result.limits, *result.unknown)]
    if result.skipped:
        lines.append(f"  left out: {result.skipped:,}")
        lines += [f"    {line}" for line in result.named]
        more = result.skipped - len(result.named)
        lines += [f"    and {more:,} more"] * (more > 0)
    return lines


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'s' * (count != 1)}"
