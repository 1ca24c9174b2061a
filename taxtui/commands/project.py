"""``taxtui project``: the projection of recordings to a training run of any size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taxtui.commands import pages, project_what_if
from taxtui.commands.files import find_recording, load_recordings, load_reference
from taxtui.commands.progress import progress
from taxtui.errors import UsageError
from taxtui.options.rows import ACTIONS, SUBSTRATE, choosing, pop_choice
from taxtui.options.training import TYPED, TrainingCommand, is_typed
from taxtui.options.training_runs import place_among, places_of, providers_of, unmatched_sections
from taxtui.report.formats import BY_NAME, NAMES, Report, Section
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel import CellFilter, CellIdentity, Published, Recording, Reference, Row, SubstrateRun, TrainingRun
    from taxtui.options.rows import RowChoice


SIZE: Final = ("trajectories", "workers")
DEFAULT_SIZE: Final = (
    "The size of the training run is taxtui's default: 1,000,000 trajectories on 500 workers. Change it with "
    "--trajectories and --workers, or describe your run: taxtui project --init > lab.toml, then --training lab.toml."
)
MORE: Final = "--full: exec against session, all wall-clocks, causes and steps. --explain: the formulas."
CHOOSE: Final = "--tier, --mode, --substrate or --actions"


def _print_template(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print the training file and end."""
    if wanted and not context.resilient_parsing:
        from taxtui.options.training_file import TEMPLATE

        click.echo(TEMPLATE, nl=False)
        context.exit()


@click.command("project", cls=TrainingCommand, params=list(TYPED))
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option(
    "--init",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_template,
    help="Print a commented training file to start from: taxtui project --init > lab.toml",
)
@choosing(SUBSTRATE, ACTIONS)
@click.option(
    "--reference", metavar="RECORDING", help="Recording with the dispatch that bounds the tax of imported rows."
)
@click.option("--full", is_flag=True, help="Print the tables behind the answer too: modes, wall-clocks, causes, steps.")
@project_what_if.OPTION
@click.option(
    "--explain", is_flag=True, help="Print the formulas of worker-hours, wall-clock and dollars, with values."
)
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help="Output format.")
@pages.html_option
@click.pass_context
def command(
    context: click.Context,
    /,
    recordings: tuple[str, ...],
    reference: str | None,
    full: bool,
    explain: bool,
    form: str,
    html: Path | None,
    changed_actions: tuple[str, ...],
    **options: Any,
) -> None:
    """Project recordings to a training run: cost per substrate, ratio to the cheapest, and their intervals.

    Without a training file or options the run has 1,000,000 trajectories on 500 workers.

    RECORDING is a file from `taxtui run`, or a .toml file of published latencies; shipped files go by name, such as
    scenarios/published/essay.toml. Recordings of the same cells are pooled. A published latency answers how many
    trajectories on how many workers, and for how much; taxtui refuses other options by name.
    """
    from costmodel import Recording, SubstrateRun, TrainingRun, project_per_substrate

    for_people = BY_NAME[form].people
    if (full or explain) and not for_people:
        raise UsageError(f"--full and --explain are for people; they do not go with --format {form}")
    choice = pop_choice(options)
    if changed_actions and (full or explain or html is not None):
        raise UsageError("--what-if prints one table; leave --full, --explain and --html out")
    if html is not None:
        pages.check(html, {"--full": full, "--explain": explain, "--format": form != NAMES[0]})
    places = places_of(context)
    training_run = places[-1].training_run
    providers = providers_of(context)
    if html is not None:
        with progress("simulating and drawing the page"):
            pages.write(
                context,
                recordings,
                html,
                choice=choice,
                reference=reference,
                run_sd=training_run.run_sd,
                places=places,
                providers=providers,
            )
        click.echo(html)
        return
    sources = load_recordings(recordings)
    if changed_actions:
        with progress("simulating"):
            savings = project_what_if.answer(changed_actions, sources, places, choice, providers)
        click.echo(BY_NAME[form].render(savings))
        return
    _check_row_count(recordings, sources, choice, training_run, brief=for_people and not full and not explain)
    bounds = None if reference is None else load_reference(reference)
    if choice.substrates:  # the command line names an estimated provider too
        names = (provider.substrate for provider in providers)
        choice = choice._replace(substrates=tuple(dict.fromkeys([*choice.substrates, *names])))
    with progress("simulating" if training_run.step_rollouts else "projecting"):
        wanted = _wanted(choice, training_run)
        result = project_per_substrate(sources, places, bounds, providers, wanted)
    all_rows = [_with_sources(row, context, places) for row in result]
    try:
        rows = choice.of(all_rows)
    except UsageError:  # the refusal lists all recorded cells; a run without steps is fast
        plain_run = TrainingRun(trajectories=training_run.trajectories, workers=training_run.workers)
        choice.of([*all_rows, *project_per_substrate(sources, [SubstrateRun("", plain_run, None)])])
        raise
    recorded = [cell.identity for source in sources if isinstance(source, Recording) for cell in source.cells]
    for line in unmatched_sections(context, [*recorded, *(row.identity for row in all_rows)]):
        click.echo(f"taxtui: {clean(line)}", err=True)
    if bounds is not None:
        from taxtui.report.projected.sections import check_reference_used

        check_reference_used(bounds, (row.identity.substrate for row in all_rows if row.tax_between_worker_hours))
    size = "" if any(is_typed(context, name) or _in_file(context, name) for name in SIZE) else DEFAULT_SIZE
    click.echo(BY_NAME[form].render(_report(rows, all_rows, training_run, sources, bounds, full, size)))
    if explain:
        from taxtui.report.projected import explain as explanation

        for row in rows:
            click.echo(f"\n{explanation.to_text(row, place_among(places, row.identity).training_run)}")


def _with_sources(row: Row, context: click.Context, places: Sequence[SubstrateRun]) -> Row:
    """Return a row with the sources of the training file in its assumptions."""
    if row.attribution is None:
        return row
    from taxtui.report.projected.sources import input_values, sourced

    values = input_values(context, place_among(places, row.identity).spec)
    assumptions = sourced([*row.assumptions, *row.attribution.assumptions], values)
    return replace(row, attribution=row.attribution._replace(assumptions=assumptions))


def _in_file(context: click.Context, name: str) -> bool:
    """Whether the training file has a value of an option."""
    file = context.params["file"]
    return file is not None and name in file.values


def _wanted(choice: RowChoice, training_run: TrainingRun) -> CellFilter | None:
    """Return a filter of cells: the chosen cells and the baseline. None: all cells."""
    if not any(choice):
        return None
    from costmodel import FIXED_LENGTH, matches_spec

    def wanted(identity: CellIdentity) -> bool:
        if training_run.baseline is not None and matches_spec(identity, training_run.baseline):
            return True
        recorded = training_run.length is None and identity.length == FIXED_LENGTH
        if recorded and choice.lengths and identity.actions not in choice.lengths:
            return False
        return choice.means(identity)

    return wanted


def _check_row_count(
    names: Sequence[str],
    sources: Sequence[Recording | Published],
    choice: RowChoice,
    training_run: TrainingRun,
    *,
    brief: bool,
) -> None:
    """Refuse more rows than recordings of this size may have.

    Concurrencies of a cell share a row; so are its lengths if the training run has a length.
    """
    from costmodel import Recording
    from taxtui.report.row_limits import ANSWER, TABLES

    recordings = [(name, source) for name, source in zip(names, sources, strict=True) if isinstance(source, Recording)]
    rows = set()
    for cell in (cell for _, recording in recordings for cell in recording.cells):
        if choice.means(cell.identity):
            actions = cell.identity.actions if training_run.length is None else 0
            rows.add((cell.identity._replace(concurrency=1, arrival="", actions=actions), cell.provenance))
    limit = ANSWER if brief else TABLES
    limit.check(len(rows), [find_recording(name) for name, _ in recordings], CHOOSE)


def _report(
    rows: Sequence[Row],
    all_rows: Sequence[Row],
    training_run: TrainingRun,
    sources: Sequence[Recording | Published],
    bounds: Reference | None,
    full: bool,
    size_note: str,
) -> Report:
    """Return the answer, with ``full`` also the tables behind the answer; records have all values in every row."""
    from taxtui.report.answer import projected, record

    result = projected.answer(all_rows, rows, training_run)

    def sections() -> Sequence[Section]:
        from taxtui.report.projected import attributed
        from taxtui.report.projected.sections import CAUSES, MONEY
        from taxtui.report.projected.sections import sections as all_tables

        if full:
            return projected.all_sections(rows, result, training_run, sources, bounds)
        table_rows = projected.by_substrate(rows, result)
        answer = [*attributed.sections(table_rows, training_run), *projected.sections(result, training_run, full=full)]
        tables = all_tables(table_rows, training_run, sources, bounds)
        asked = {MONEY, *[CAUSES] * (bounds is not None)}
        answer += [section for section in tables if section.title in asked]
        return [*answer, Section("", [], [], [size_note, MORE] if size_note else [MORE])]

    def records() -> list[dict[str, Any]]:
        from taxtui.report.projected.record import record as projection

        added = record.records(result)
        return [{**projection(row), "answer": added[record.key_of(row)]} for row in rows]

    return Report(sections, records)
