"""``taxtui report``: the answer of a measurement, and the tables behind the answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taxtui.commands import pages
from taxtui.commands.files import find_recording, load_reference
from taxtui.commands.progress import progress
from taxtui.errors import RecordingError, UsageError
from taxtui.options.numbers import run_sd_option
from taxtui.options.rows import ACTIONS, MODE, SUBSTRATE, TIER, choosing, pop_choice
from taxtui.report import row_limits
from taxtui.report.formats import BY_NAME, NAMES, Report

if TYPE_CHECKING:
    from costmodel import Answer, Recording, Reference
    from taxtui.report.formats import Section
    from taxtui.report.measured.rows import MeasuredRow

CHOOSE: Final = "--tier, --mode, --substrate or --actions"
TABLE_NAMES: Final = (
    *("cold-start", "fresh", "completion", "actions", "response", "breakdown", "tax", "ladder", "failures", "summary"),
    "distributions",
)
MORE_TABLES: Final = f"Every table: --full. One: --table {', '.join(TABLE_NAMES[:-1])} or {TABLE_NAMES[-1]}."


@click.command("report")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option("--full", is_flag=True, help="Print the tables behind the answer too.")
@click.option(
    "--table",
    "name",
    type=click.Choice(TABLE_NAMES),
    help="Print this table instead of the answer.",
)
@choosing(SUBSTRATE, TIER, ACTIONS, MODE)
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help="Output format.")
@click.option(
    "--reference", metavar="RECORDING", help="Recording with the dispatch that bounds the tax of imported rows."
)
@click.option("--prices", metavar="FILE", help="Price sheet of the summary.")
@run_sd_option
@pages.html_option
@click.pass_context
def command(
    context: click.Context,
    /,
    recordings: tuple[str, ...],
    full: bool,
    name: str | None,
    form: str,
    reference: str | None,
    prices: str | None,
    run_sd: float | None,
    html: Path | None,
    **options: Any,
) -> None:
    """Print the cheapest substrate for the same work, by how much and how sure, and the tables behind it.

    The tables, with --full or one by one with --table: cold start, fresh episode, completion, per action, response,
    breakdown, tax; ladder, failures by cause, summary, distributions. Percentiles and means come from the exact
    samples; equal cells of several recordings are pooled. csv and json have a row per cell, in nanoseconds; the ladder
    has a row per concurrency. The distributions are for models of a training run.
    """
    choice = pop_choice(options)
    if prices is not None and name != "summary":
        raise UsageError("--prices needs --table summary", fix="the cost of a training run: taxtui project")
    if html is not None:
        excluded = {"--table": name, "--full": full, "--format": form != NAMES[0]}
        pages.check(html, excluded)
        with progress("drawing the page"):
            pages.write(context, recordings, html, choice=choice, reference=reference, run_sd=run_sd)
        click.echo(html)
        return
    from taxtui.report.answer import measured
    from taxtui.report.measured.rows import rows_of
    from taxtui.report.measured.samples import read_samples

    if full and name is not None:
        raise UsageError(f"--full is every table, --table {name} one", fix="leave one of them out")
    if full and not BY_NAME[form].people:
        raise UsageError(f"--full is for people; --format {form} holds all of it")
    paths = [find_recording(recording) for recording in recordings]
    cells, sources = read_samples(paths)
    rows = rows_of(cells, run_sd)
    if not rows:
        raise RecordingError(f"{', '.join(recordings)}: no trial has ended, so there is nothing to report")
    unfinished = len(cells) - len(rows)
    rows = choice.of(rows)
    limit = row_limits.ANSWER if BY_NAME[form].people and not full and name is None else row_limits.TABLES
    limit.check(len(rows), paths, CHOOSE)
    bounds = None if reference is None else load_reference(reference)
    needed = name in (None, "tax") or bounds is not None
    answer = measured.answer(rows, sources, run_sd, bounds) if needed else None
    if name is not None:
        result = _table(name, rows, sources, answer, unfinished, prices, bounds)
    else:
        assert answer is not None
        result = _answer(rows, sources, answer, unfinished, full=full, bounds=bounds)
    click.echo(BY_NAME[form].render(result))


def _table(
    name: str,
    rows: Sequence[MeasuredRow],
    sources: Sequence[Recording],
    answer: Answer | None,
    unfinished: int,
    price_sheet: str | None,
    bounds: Reference | None,
) -> Report:
    """Return a table. Raises ``costmodel.errors.PriceError``: the price sheet cannot be read."""
    from costmodel import load_prices
    from taxtui.report.answer.record import rows_by_key
    from taxtui.report.measured import ladders
    from taxtui.report.measured.record import record
    from taxtui.report.measured.sections import sections

    if name == ladders.LADDER:
        sweeps = ladders.ladders_of(rows)
        return Report(lambda: ladders.sections(sweeps), lambda: ladders.records(sweeps))
    prices = None if price_sheet is None else load_prices(price_sheet)
    projections = rows_by_key(answer) if answer else {}
    return Report(
        lambda: sections(rows, sources, (name,), unfinished, answer, prices, bounds),
        lambda: [record(row, (name,), projections.get(row.key), prices) for row in rows],
    )


def _answer(
    rows: Sequence[MeasuredRow],
    sources: Sequence[Recording],
    answer: Answer,
    unfinished: int,
    *,
    full: bool,
    bounds: Reference | None,
) -> Report:
    """Return the answer, if ``full`` with all tables; records have all values in every row."""
    from taxtui.report.answer import sections as answer_tables
    from taxtui.report.answer.record import records, rows_by_key
    from taxtui.report.measured.ladders import ladders_of
    from taxtui.report.measured.ladders import sections as ladder_sections
    from taxtui.report.measured.record import record
    from taxtui.report.measured.sections import TABLES, files, sections

    def answer_sections() -> list[Section]:
        ladders = [ladder for ladder in ladders_of(rows) if full or len(ladder.levels) > 3]
        every = full or not any(row.cell.succeeded for row in rows)
        tables = answer_tables.sections(answer, "", full=every)
        tables += ladder_sections(ladders) if ladders else []
        if every:
            return [*tables, *sections(rows, sources, TABLES, unfinished, answer, reference=bounds)]
        if bounds is not None:
            tables += sections(rows, sources, ("tax",), unfinished, answer, reference=bounds)[:-1]
        return [*tables, files(sources, [MORE_TABLES])]

    def answer_records() -> list[dict[str, Any]]:
        added, projections = records(answer), rows_by_key(answer)
        return [{**record(row, TABLES, projections.get(row.key)), "answer": added.get(row.key)} for row in rows]

    return Report(answer_sections, answer_records)
