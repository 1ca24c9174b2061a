"""``taxtui project``: what recordings mean for a training run of any size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taxtui.commands import page_files, what_if
from taxtui.commands.waiting import waiting
from taxtui.errors import UsageError
from taxtui.options.asking import idle_places, place_among, places_of, providers_of
from taxtui.options.rows import ACTIONS, SORT, SUBSTRATE, choosing, taken
from taxtui.options.training import TYPED, AskingCommand, is_typed
from taxtui.report.formats import BY_NAME, NAMES, Report
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel import CellFilter, CellIdentity, PlaceAsked, Published, Recording, Reference, Row, TrainingRun
    from taxtui.options.rows import RowChoice
    from taxtui.report.formats import Section


SIZE: Final = ("trajectories", "workers")
USUAL_SIZE: Final = (
    "The size of the training run is taxtui's default: 1,000,000 trajectories on 500 workers. Change it with "
    "--trajectories and --workers, or describe your run: taxtui project --init > lab.toml, then --training lab.toml."
)


def _print_template(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print the training file and end."""
    if wanted and not context.resilient_parsing:
        from taxtui.options.training_file import TEMPLATE

        click.echo(TEMPLATE, nl=False)
        context.exit()


@click.command("project", cls=AskingCommand, params=list(TYPED))
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option(
    "--init",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_template,
    help="Print a commented training file to start from: taxtui project --init > lab.toml",
)
@choosing(SUBSTRATE, ACTIONS, SORT)
@click.option(
    "--reference", metavar="RECORDING", help="Recording with the dispatch that bounds the tax of imported rows."
)
@click.option("--full", is_flag=True, help="Print the tables behind the answer too: causes, money, steps.")
@what_if.OPTION
@click.option("--explain", is_flag=True, help="Print every input, formula and intermediate value of each row.")
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help="Output format.")
@page_files.html_option
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
    actions_changed: tuple[str, ...],
    **asked: Any,
) -> None:
    """Project recordings to a training run: cost per substrate, ratio to the cheapest, and their intervals.

    Without a training file or options the run has 1,000,000 trajectories on 500 workers.

    RECORDING is a file from `taxtui run`, or a .toml file of published latencies; shipped files go by name, such as
    scenarios/published/essay.toml. Recordings of the same cells are pooled. A published latency answers how many
    trajectories on how many workers, and for how much; taxtui refuses other options by name.
    """
    from costmodel import PlaceAsked, TrainingRun, check_reference_used, project_places
    from taxtui.commands.opening import opened, opened_all, reference_of

    if (full or explain) and not BY_NAME[form].people:
        raise UsageError(f"--full and --explain are for people; they do not go with --format {form}")
    choice = taken(asked)
    if actions_changed and (full or explain or html is not None):
        raise UsageError("--what-if prints one table; leave --full, --explain and --html out")
    if html is not None:
        others = {"--full": full, "--explain": explain}
        page_files.check(html, None, {**others, "--format": form != NAMES[0]})
    places = places_of(context)
    training_run = places[-1].training_run
    if html is not None:
        with waiting("simulating and drawing the page"):
            made = page_files.make(
                recordings,
                html,
                None,
                choice=choice,
                reference=reference,
                run_sd=training_run.run_sd,
                places=places,
                providers=providers_of(context, opened),
                options=page_files.words(context),
                command="project",
            )
        click.echo(made[0])
        return
    sources = opened_all(recordings)
    if actions_changed:
        with waiting("simulating") as progress:
            effects = what_if.answer(actions_changed, sources, places, choice, providers_of(context, opened), progress)
        click.echo(BY_NAME[form].render(effects))
        return
    _check_rows(recordings, sources, choice, training_run, brief=BY_NAME[form].people and not full and not explain)
    bounds = None if reference is None else reference_of(reference)
    providers = providers_of(context, opened)
    if choice.substrates:  # a composed provider was named too
        names = (provider.substrate for provider in providers)
        choice = choice._replace(substrates=tuple(dict.fromkeys([*choice.substrates, *names])))
    seen = full or not BY_NAME[form].people  # the answer alone has no stress
    with waiting("simulating" if training_run.step_rollouts else "projecting"):
        result = project_places(sources, places, bounds, providers, _wanted(choice, training_run), stressed=seen)
    rows = every = [_sourced(row, context, places) for row in result]
    if not rows:  # what was chosen is not there: without steps it takes no time to say what is
        plain = TrainingRun(trajectories=training_run.trajectories, workers=training_run.workers)
        rows = every = project_places(sources, [PlaceAsked("", plain, None)], bounds, stressed=False)
    for line in idle_places(context, [row.identity for row in rows]):
        click.echo(f"taxtui: {clean(line)}", err=True)
    if bounds is not None:
        check_reference_used(bounds, (row.identity.substrate for row in rows if row.tax_between_worker_hours))
    rows = choice.of(rows)
    size = "" if any(is_typed(context, name) or _in_file(context, name) for name in SIZE) else USUAL_SIZE
    click.echo(BY_NAME[form].render(_told(rows, every, training_run, sources, bounds, choice, full, size)))
    if explain:
        from taxtui.report.projected import explain as explanation

        for row in rows:
            click.echo(f"\n{explanation.to_text(row, place_among(places, row.identity).training_run)}")


def _sourced(row: Row, context: click.Context, places: Sequence[PlaceAsked]) -> Row:
    """A row whose assumptions have the sources that were given for them."""
    if row.attribution is None:
        return row
    from taxtui.report.projected.sources import input_values, sourced

    asked = input_values(context, place_among(places, row.identity).spec)
    told = sourced([*row.assumptions, *row.attribution.assumptions], asked)
    return replace(row, attribution=row.attribution._replace(assumptions=told))


def _in_file(context: click.Context, name: str) -> bool:
    """Whether the training file has a value of an option."""
    file = context.params["file"]
    return file is not None and name in file.values


def _wanted(choice: RowChoice, training_run: TrainingRun) -> CellFilter | None:
    """Which cells are projected: where there are steps to simulate, only those that are shown or compared with."""
    if training_run.step_rollouts is None or not (choice.tiers or choice.modes or choice.substrates):
        return None
    from costmodel import matches_spec

    def wanted(identity: CellIdentity) -> bool:
        if training_run.baseline is not None and matches_spec(identity, training_run.baseline):
            return True
        return choice.means(identity)

    return wanted


def _check_rows(
    names: Sequence[str],
    sources: Sequence[Recording | Published],
    choice: RowChoice,
    training_run: TrainingRun,
    *,
    brief: bool,
) -> None:
    """Refuse more rows than recordings of this size may have; levels are one, and so are lengths where one is asked."""
    from costmodel import Recording
    from taxtui.commands.opening import located
    from taxtui.report.row_limits import ANSWER, TABLES

    files = [(name, item) for name, item in zip(names, sources, strict=True) if isinstance(item, Recording)]
    asked = [
        (cell.identity._replace(concurrency=1, arrival=""), cell.provenance)
        for _, source in files
        for cell in source.cells
        if choice.means(cell.identity)
    ]
    rows = {
        (item if training_run.length is None else item._replace(actions=0), provenance) for item, provenance in asked
    }
    limit = ANSWER if brief else TABLES
    limit.check(len(rows), [located(name) for name, _ in files], "--tier, --mode, --substrate or --actions")


def _told(
    rows: Sequence[Row],
    every: Sequence[Row],
    training_run: TrainingRun,
    sources: Sequence[Recording | Published],
    bounds: Reference | None,
    choice: RowChoice,
    full: bool,
    size: str,
) -> Report:
    """The answer, then, where asked for, the tables behind it; or all of that in every row."""
    from taxtui.report.answer import projected, record

    result = projected.answer(every, rows, training_run, choice)
    shown, data = projected.in_tables(rows, result, choice), projected.arranged(rows, result, choice)

    def sections() -> Sequence[Section]:
        from taxtui.report.projected import attributed
        from taxtui.report.projected.sections import sections

        answer = [*attributed.sections(shown, training_run), *projected.sections(result, training_run, choice, bounds)]
        if size:
            answer[-1] = answer[-1]._replace(notes=[size, *answer[-1].notes])
        if not full:
            return answer
        told = {section.title for section in answer}
        return [*answer, *(item for item in sections(shown, training_run, sources, bounds) if item.title not in told)]

    def records() -> list[dict[str, Any]]:
        from taxtui.report.projected.record import record as projection

        added = record.records(result)
        return [{**projection(row), "answer": added[projected.key_of(row)]} for row in data]

    return Report(sections, records)
