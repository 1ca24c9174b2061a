"""``taxtui report``: tables of what was measured, from the exact samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taxtui.commands import page_files
from taxtui.errors import RecordingError, UsageError
from taxtui.report.formats import BY_NAME, NAMES, Report
from taxtui.report.run_spread import run_sd_option

if TYPE_CHECKING:
    from taxtui.report.measured.rows import Row


@click.command("report")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option(
    "--table",
    "name",
    type=click.Choice(["cold-start", "fresh", "completion", "actions", "breakdown", "tax", "laws", "all"]),
    default="all",
    show_default=True,
    help="Which of them.",
)
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
@click.option(
    "--reference", metavar="RECORDING", help="Its dispatch bounds the tax of what does not tell its commands' own time."
)
@click.option("--against", metavar="RECORDING", help="Show what changed from this one, cell by cell.")
@run_sd_option
@page_files.html_option
@page_files.figures_option
def command(
    recordings: tuple[str, ...],
    name: str,
    form: str,
    reference: str | None,
    against: str | None,
    run_sd: float | None,
    html: Path | None,
    pictures: Path | None,
) -> None:
    """Tables of what was measured: cold start, fresh episode, completion, per action, breakdown, tax; laws.

    Percentiles and means with what supports them, from the exact samples; recordings of the same cells are pooled.
    csv and json have a row per cell, in nanoseconds. The laws (think time, lengths, failures, groups) are no part of
    all: they describe the workload, for models of a run.
    """
    if html is not None or pictures is not None:
        page_files.check(html, pictures, {"--table": name != "all", "--format": form != NAMES[0], "--against": against})
    from taxtui.commands.opening import located
    from taxtui.report.measured.record import record
    from taxtui.report.measured.rows import rows_of
    from taxtui.report.measured.samples import read_samples
    from taxtui.report.measured.tables import LAWS, TABLES, sections

    paths = [located(recording) for recording in recordings]
    cells, sources = read_samples(paths)
    rows = rows_of(cells, run_sd)
    if not rows:
        raise RecordingError(f"{', '.join(recordings)}: no trial has ended, so there is nothing to report")
    if reference is not None:
        from taxtui.commands.opening import reference_of
        from taxtui.report.measured.rows import bound

        bound(rows, reference_of(reference))
    if html is not None or pictures is not None:
        from taxtui.report.page.material import Material

        material = Material(rows, sources, paths, len(cells) - len(rows), run_sd)
        asked = {"--reference": reference and Path(reference).name, "--run-sd": run_sd}
        for written in page_files.write(material, html, pictures, asked):
            click.echo(written)
        return
    tables = TABLES if name == "all" else (name,)
    if against is not None:
        if name == LAWS:
            raise UsageError("--against compares durations: it does not go with --table laws")
        found = _differences(rows, recordings, against, tables, run_sd)
        if not BY_NAME[form].tells(found):
            raise UsageError(f"--against is for people; it does not go with --format {form}")
    else:
        found = Report(
            lambda: sections(rows, sources, tables, len(cells) - len(rows)),
            lambda: [record(row, tables) for row in rows],
        )
    click.echo(BY_NAME[form].render(found))


def _differences(
    rows: Sequence[Row], recordings: Sequence[str], against: str, tables: Sequence[str], run_sd: float | None
) -> Report:
    from taxtui.commands.opening import located
    from taxtui.report.measured.differences import pairs, sections
    from taxtui.report.measured.rows import rows_of
    from taxtui.report.measured.samples import read_samples

    found = pairs(rows_of(read_samples([located(against)])[0], run_sd), rows)
    names = ", ".join(Path(name).name for name in recordings)
    if not found:
        raise UsageError(f"{against} and {names} share no cell: no tier was run in the same way at the same length")
    return Report(lambda: sections(found, tables, Path(against).name, names))
