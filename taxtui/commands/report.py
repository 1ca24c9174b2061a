"""``taxtui report``: what was measured: the answer, and the tables behind it, from the exact samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taxtui.commands import page_files
from taxtui.commands.waiting import waiting
from taxtui.errors import RecordingError, UsageError
from taxtui.options.rows import ACTIONS, GROUP, MODE, SORT, SUBSTRATE, TIER, choosing, taken
from taxtui.options.run_spread import run_sd_option
from taxtui.report import row_limits
from taxtui.report.formats import BY_NAME, NAMES, Report

if TYPE_CHECKING:
    from costmodel import Recording, Reference
    from taxtui.options.rows import RowChoice
    from taxtui.report.formats import Section
    from taxtui.report.measured.rows import MeasuredRow

CHOOSE = "--tier, --mode, --substrate or --actions"
ONE_BY_ONE = (
    *("cold-start", "fresh", "completion", "actions", "response", "breakdown", "tax", "ladder", "failures", "summary"),
    "distributions",
)
MORE = f"Every table: --full. One: --table {', '.join(ONE_BY_ONE[:-1])} or {ONE_BY_ONE[-1]}."


@click.command("report")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option("--full", is_flag=True, help="Print the tables behind the answer too, as --table all.")
@click.option(
    "--table",
    "name",
    type=click.Choice([*ONE_BY_ONE, "all"]),
    help="Print this table instead of the answer; all: the measured tables, below the answer.",
)
@choosing(SUBSTRATE, TIER, ACTIONS, MODE, SORT, GROUP)
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help="Output format.")
@click.option(
    "--reference", metavar="RECORDING", help="Recording with the dispatch that bounds the tax of imported rows."
)
@click.option("--prices", metavar="FILE", help="Price sheet of the summary.")
@run_sd_option
@page_files.html_option
@page_files.figures_option
@page_files.training_option
def command(
    recordings: tuple[str, ...],
    full: bool,
    name: str | None,
    form: str,
    reference: str | None,
    prices: str | None,
    run_sd: float | None,
    html: Path | None,
    pictures: Path | None,
    training: str | None,
    **chosen: Any,
) -> None:
    """Print the cheapest substrate for the same work, by how much and how sure, and the tables behind it.

    The tables, with --full or one by one with --table: cold start, fresh episode, completion, per action, response,
    breakdown, tax; ladder, failures by cause, summary, distributions. Percentiles and means come from the exact
    samples; equal cells of several recordings are pooled. csv and json have a row per cell, in nanoseconds; the ladder
    has a row per concurrency. The distributions are for models of a training run.
    """
    choice = taken(chosen)
    if prices is not None and name != "summary":
        raise UsageError("--prices needs --table summary", fix="the cost of a training run: taxtui project")
    if html is not None or pictures is not None:
        others = {"--table": name, "--full": full, "--format": form != NAMES[0]}
        page_files.check(html, pictures, {**others, "--group": choice.group})
        places, providers = ([], []) if training is None else page_files.asked_by_file(training)
        again = {"--training": training and Path(training).name, "--run-sd": run_sd}
        with waiting("drawing the page"):
            made = page_files.make(
                recordings,
                html,
                pictures,
                choice=choice,
                reference=reference,
                run_sd=run_sd,
                places=places,
                providers=providers,
                options=[part for option, value in again.items() if value is not None for part in (option, str(value))],
            )
        for path in made:
            click.echo(path)
        return
    if training is not None:
        raise UsageError(
            "--training needs --html or --figures", fix="without them: taxtui project FILE --training FILE"
        )
    from taxtui.commands.opening import located, reference_of
    from taxtui.report.measured import ladders
    from taxtui.report.measured.record import record
    from taxtui.report.measured.rows import bound, rows_of
    from taxtui.report.measured.samples import read_samples
    from taxtui.report.measured.sections import TABLES, sections

    if full and name not in (None, "all"):
        raise UsageError(f"--full is every table, --table {name} one", fix="leave one of them out")
    if full and not BY_NAME[form].people:
        raise UsageError(f"--full is for people; --format {form} holds all of it")
    paths = [located(recording) for recording in recordings]
    cells, sources = read_samples(paths)
    rows = rows_of(cells, run_sd)
    if not rows:
        raise RecordingError(f"{', '.join(recordings)}: no trial has ended, so there is nothing to report")
    unfinished = len(cells) - len(rows)
    rows = choice.of(rows)
    limit = row_limits.ANSWER if BY_NAME[form].people and not full and name is None else row_limits.TABLES
    limit.check(len(rows), paths, CHOOSE)
    bounds = None if reference is None else reference_of(reference)
    if bounds is not None:
        bound(rows, bounds)
    sheet = None
    if prices is not None:
        from costmodel import load_prices

        sheet = load_prices(prices)
    tables = TABLES if name in (None, "all") else (name,)
    if name in (None, "all"):
        result = _answered(rows, sources, choice, run_sd, bounds, unfinished, full=full or name is not None)
    else:
        if choice.sort or choice.group:
            raise UsageError("--sort and --group order the answer", fix=f"leave --table {name} out, or them")
        if name == ladders.LADDER:
            climbed = ladders.ladders_of(rows)
            result = Report(lambda: ladders.sections(climbed), lambda: ladders.records(climbed))
        else:
            result = Report(
                lambda: sections(rows, sources, tables, unfinished, prices=sheet),
                lambda: [record(row, tables, sheet) for row in rows],
            )
    click.echo(BY_NAME[form].render(result))


def _answered(
    rows: Sequence[MeasuredRow],
    sources: Sequence[Recording],
    choice: RowChoice,
    run_sd: float | None,
    bounds: Reference | None,
    unfinished: int,
    *,
    full: bool,
) -> Report:
    """The answer, and the tables below it; or all of that in every row."""
    from taxtui.report.answer import measured, order
    from taxtui.report.answer import sections as answer_sections
    from taxtui.report.answer.record import records
    from taxtui.report.measured.ladders import ladders_of
    from taxtui.report.measured.ladders import sections as ladder_sections
    from taxtui.report.measured.record import record
    from taxtui.report.measured.sections import TABLES, files, sections

    result = order.sorted_by(measured.answer(rows, sources, run_sd, bounds), choice.sort)
    arranged = choice.sort is not None or choice.group is not None
    shown = order.arranged(rows, result, measured.key_of, choice.group) if arranged else rows

    def told() -> list[Section]:
        climbed = [ladder for ladder in ladders_of(rows) if full or ladder.law]
        answer = answer_sections.sections(result, "", by=choice.group, reference=bounds)
        answer += ladder_sections(climbed) if climbed else []
        if not full and any(row.cell.succeeded for row in rows):
            return [*answer, files(sources, [MORE])]
        return [*answer, *sections(shown, sources, TABLES, unfinished, arranged=arranged)]

    def data() -> list[dict[str, Any]]:
        added = records(result)
        return [{**record(row, TABLES), "answer": added.get(measured.key_of(row))} for row in shown]

    return Report(told, data)
