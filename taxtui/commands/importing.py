"""``taxtui import``: a recording of what other tools have logged."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from costmodel import events
from taxtui.errors import UsageError
from taxtui.importers import registry
from taxtui.importers.importing import Imported, ImportProgress, files_of, import_files, reader_for
from taxtui.importers.protocol import THINK, Asked
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from costmodel import Prices
    from taxtui.importers.protocol import Reader

MEANINGS = ("action", THINK, events.CREATE, events.READY, events.SETUP, events.VERIFY, events.CLEANUP)
"""Names of spans that ``--map`` takes."""


@click.command("import")
@click.argument("given", nargs=-1, required=True, metavar="[FORMAT] PATH...")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="New file for the recording.",
)
@click.option("--map", "spans", multiple=True, metavar="SPAN=PHASE", help=f"otlp: {', '.join(MEANINGS)} by span name.")
@click.option("--keep-names", is_flag=True, help="Keep names of tasks, images, agents, groups; else digests of them.")
@click.option("--summary", is_flag=True, help="Print `report --table summary` of the recording.")
@click.option("--prices", metavar="FILE", help="Price sheet of the summary.")
@click.option("--strict", is_flag=True, help="Refuse where a file cannot be read, instead of leaving it out.")
def command(
    given: tuple[str, ...],
    out: Path,
    spans: tuple[str, ...],
    keep_names: bool,
    summary: bool,
    prices: str | None,
    strict: bool,
) -> None:
    """Make a recording of the logs of other tools: files, or folders that are searched.

    FORMAT is guessed from the content where it is left out. Prompts, outputs, commands, paths and keys are never
    copied. Values that the source lacks stay unknown and are listed. docs/own-work.md says what each format holds.
    """
    if prices is not None and not summary:
        raise UsageError("--prices needs --summary", fix=f"later: taxtui project {out} --prices {prices}")
    name, paths = _parted(given)
    sheet = _sheet(prices)
    asked = Asked(_mapped(spans))
    reader = reader_for(name, paths)
    with _Bar(reader, paths) as progress:
        result = import_files(reader, paths, out, asked, keep_names=keep_names, strict=strict, progress=progress)
    for line in _told(reader, result, out):
        click.echo(clean(line), err=True)
    if summary:
        click.echo(_summary(out, sheet))


def _sheet(name: str | None) -> Prices | None:
    if name is None:
        return None
    from costmodel import load_prices

    return load_prices(name)


def _summary(out: Path, prices: Prices | None) -> str:
    """The summary of every cell of a recording."""
    from taxtui.report.formats import BY_NAME, NAMES, Report
    from taxtui.report.measured import overview
    from taxtui.report.measured.rows import rows_of
    from taxtui.report.measured.samples import read_samples
    from taxtui.report.measured.sections import marks_of, name_of

    rows = rows_of(read_samples([out])[0])
    marks = marks_of(rows)
    names = {row: name_of(row, marks, []) for row in rows}
    return BY_NAME[NAMES[0]].render(Report(lambda: overview.sections(names, prices)))


def _parted(given: Sequence[str]) -> tuple[str | None, list[Path]]:
    """The format, if the first word is one, and the paths."""
    first, *rest = given
    if rest and (first in registry.names() or not Path(first).exists()):
        registry.point(first)  # refuses what is neither, with the nearest name
        return first, [Path(name) for name in rest]
    return None, [Path(name) for name in given]


def _mapped(spans: Sequence[str]) -> dict[str, str]:
    result: dict[str, str] = {}
    for span in spans:
        name, equals, phase = span.rpartition("=")
        if not (name and equals and phase in MEANINGS):
            raise UsageError(f"--map {span}: not NAME=PHASE", fix=f"PHASE is one of {', '.join(MEANINGS)}")
        if result.setdefault(name, phase) != phase:
            raise UsageError(f"--map {name} is {result[name]} and {phase}")
    return result


class _Bar(ImportProgress):
    """A bar over the files, with the trials so far; only on a terminal."""

    def __init__(self, reader: Reader, paths: Sequence[Path]) -> None:
        self._bar: ProgressBar[Any] | None = None
        if sys.stderr.isatty():
            total = sum(1 for _ in files_of(reader, paths))
            self._bar = click.progressbar(
                length=total,
                label="reading",
                file=sys.stderr,
                item_show_func=lambda trials: f"{trials or 0:,} trials",
            )

    def file(self, path: Path, trials: int) -> None:
        if self._bar:
            self._bar.update(1, trials)

    def trial(self, trials: int) -> None:
        if self._bar and trials % 500 == 0:
            self._bar.update(0, trials)

    def __enter__(self) -> _Bar:
        if self._bar:
            self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.__exit__(None, None, None)


def _told(reader: Reader, result: Imported, out: Path) -> list[str]:
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(result.outcomes.items()))
    trials, files = _counted(result.trials, "trial"), _counted(result.files, "file")
    texts = [f"{out}: {trials} of {reader.name} from {files} ({outcomes})"]
    texts += [f"  {line}" for line in (*result.limits, *result.unknown)]
    if result.skipped:
        texts.append(f"  left out: {result.skipped:,}")
        texts += [f"    {line}" for line in result.named]
        more = result.skipped - len(result.named)
        texts += [f"    and {more:,} more"] * (more > 0)
    return texts


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'s' * (count != 1)}"
