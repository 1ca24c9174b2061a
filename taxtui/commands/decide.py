"""``taxtui decide``: whether to move a training run from one place to another, on one page."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taxtui.commands import new_file
from taxtui.commands.waiting import waiting
from taxtui.errors import UsageError
from taxtui.options.asking import idle_places, place_of, providers_of, stated_at
from taxtui.options.rows import ACTIONS, choosing
from taxtui.options.training import TYPED, AskingCommand
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel import (
        Assumption,
        Candidate,
        CellIdentity,
        Decision,
        Provider,
        Published,
        Recording,
        Row,
        RunInSteps,
        Side,
        TrainingRun,
    )
    from taxtui.commands.decide_workload import Workload

UNDECIDED: Final = 6
"""The exit code of CAN'T TELL: the question was understood, and the data are too few."""
ROUGH: Final = 0.01
"""How much may be simulated of each row with ``--quick``, relative to the usual; causes are not separated."""
EACH: Final = 0.3
"""... of each row without it."""
ROUGHLY: Final = 0.1
"""... of the difference of both places."""
COARSE: Final = 0.005
"""... of rows that are only to show what would turn a decision."""


NOT_ASKED: Final = ("baseline",)
"""Options of a projection that say nothing here."""


@click.command("decide", cls=AskingCommand, params=list(TYPED), unknown=NOT_ASKED)
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option("--to", "goal", required=True, metavar="SUBSTRATE", help="Substrate to move to: daytona, docker:runsc.")
@click.option("--from", "start", metavar="SUBSTRATE", help="Substrate to move from.  [the measured one]")
@choosing(ACTIONS)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the page to a new file.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the page as a single HTML file.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    help="Output format.  [text; with -o Markdown, or JSON for FILE.json]",
)
@click.option("--quick", is_flag=True, help="Simulate roughly, and leave out the inputs that could change the verdict.")
@click.pass_context
def command(
    context: click.Context,
    /,
    recordings: tuple[str, ...],
    start: str | None,
    goal: str,
    output: Path | None,
    html: Path | None,
    form: str | None,
    quick: bool,
    lengths: tuple[int, ...],
    **_: Any,
) -> None:
    """Decide whether to move a training run: MOVE, STAY or CAN'T TELL, with the money and the decisive inputs.

    Both substrates get the same training run. Nodes, limits and prices of a single substrate are in the training file,
    under [at.SUBSTRATE]. An unmeasured substrate is estimated from published figures.

    The workload comes from --tier, --mode and -n, or the training file; else the middle of the recorded workloads.
    Exit code 0: MOVE or STAY; 6: CAN'T TELL.
    """
    from costmodel import CANNOT_TELL, Recording, decide_between, input_effects, turns
    from taxtui.commands.decide_workload import estimated, found_start, found_workload
    from taxtui.commands.opening import opened, opened_all
    from taxtui.report.decision.layout import to_markdown, to_terminal
    from taxtui.report.decision.record import record
    from taxtui.report.decision.sections import page
    from taxtui.report.formats import BY_NAME, Report
    from taxtui.report.formats.plain_tables import terminal_width
    from taxtui.report.projected.sources import input_values

    for path, option in ((output, "-o"), (html, "--html")):
        if path is not None:
            new_file.absent(path, option)
    if html is not None:
        from taxtui.report.page.decision_page import to_html
    sources = opened_all(recordings)
    cells = [cell.identity for source in sources if isinstance(source, Recording) for cell in source.cells]
    origin, choices = found_start(start, goal, cells)
    if origin == goal:
        raise UsageError(f"--from and --to are both {origin}", fix="name two substrates")
    providers = providers_of(context, opened)
    providers += estimated(goal, cells, providers, opened)
    workload, more = found_workload(context, origin, goal, cells, lengths)
    choices += more
    _check_prices(context, origin, goal, cells, providers)
    for choice in choices:
        click.echo(f"taxtui: {clean(f'{choice.name} {choice.value}: {choice.source}')}", err=True)
    effort, sides = ROUGH if quick else EACH, list["Side"]()
    for spec, other in ((origin, goal), (goal, origin)):
        with waiting(f"simulating {clean(spec)}"):
            known = sides[0].row.identity if sides else None
            sides.append(_side(spec, other, sources, providers, context, workload, effort, like=known))
    for line in idle_places(context, [side.row.identity for side in sides]):
        click.echo(f"taxtui: {clean(line)}", err=True)
    with waiting("simulating what moving saves") as progress:
        result = decide_between(sides[0], sides[1], effort=ROUGHLY if quick else 1.0, progress=progress)
    with waiting("looking for what would turn it") as progress:
        moved = input_effects(result, progress, rough=quick)
        turned = turns(result, simulate=not quick)
    asked = [*choices, *_assumptions(result, [input_values(context, spec) for spec in (origin, goal)])]
    written = page(result, moved, turned, asked, shlex.join(["taxtui", *sys.argv[1:]]), rough=quick)
    if html is not None:
        new_file.write([to_html(written).encode()], html, "--html")
        click.echo(html)
    if form is None:
        form = "text" if output is None else "json" if output.suffix == ".json" else "markdown"
    if form == "json":
        text = BY_NAME[form].render(Report(list, lambda: [record(result, moved, turned, asked)]))
    else:
        text = to_markdown(written) if form == "markdown" else to_terminal(written, terminal_width())
    if output is not None:
        new_file.write([f"{text}\n".encode()], output, "-o")
        click.echo(output)
    elif html is None:
        click.echo(text)
    if result.verdict == CANNOT_TELL:
        context.exit(UNDECIDED)


def _check_prices(
    context: click.Context, origin: str, goal: str, cells: Sequence[CellIdentity], providers: Sequence[Provider]
) -> None:
    """Refuse a training run in dollars, before it is simulated, where the provider alone has a price.

    ``decide_between`` refuses the other cases: whether a price sheet bills a measured substrate shows in its row.
    """
    from costmodel import matches_spec, price_keys

    place = place_of(context, origin)
    run = place.training_run
    free = place.prices is None and run.node_usd_hour is None and run.suspended_usd_hour is None
    measured = any(matches_spec(cell, goal) for cell in cells)
    billed = not measured and any(provider.prices for provider in providers if provider.substrate == goal)
    if run.gpu_usd_hour is not None and free and billed:
        fix = f"add {price_keys(origin.partition(':')[0])}"
        raise UsageError(f"{origin} costs nothing here and {goal} is billed", fix=fix)


def _side(
    spec: str,
    other: str,
    sources: Sequence[Recording | Published],
    providers: Sequence[Provider],
    context: click.Context,
    workload: Workload,
    shown: float,
    *,
    like: CellIdentity | None,
) -> Side:
    """One place: the one row that is meant.

    ``other`` is the other place, whose images an unmeasured place needs too; ``like`` is the cell of its row, where
    that is known.

    Raises:
        UsageError: there is none, or there are several.
    """
    from costmodel import Recording, Side, candidates_of, matches_spec, project, runs_of

    def wanted(identity: CellIdentity) -> bool:
        return matches_spec(identity, spec) and workload.matches(identity)

    place = place_of(context, spec)
    recordings = [item for item in sources if isinstance(item, Recording)]
    known = [item for item in providers if item.substrate == spec.partition(":")[0]]
    if known and not any(wanted(cell.identity) for item in recordings for cell in item.cells):
        images = place_of(context, other).training_run.images
        candidates = candidates_of(
            recordings,
            place,
            known[-1],
            workload.matches,
            stated=stated_at(context, spec),
            images_gb=() if images is None else images.sizes_gb,
            like=like,
        )
        if not candidates:
            raise _nothing(f"{spec} {workload}", recordings)
        return _unmeasured(candidates, f"{spec} {workload}", shown)

    def at(training_run: TrainingRun, effort: float = COARSE) -> Row:
        rows = project(
            sources,
            training_run,
            place.prices,
            None,
            (),
            effort=effort,
            wanted=wanted,
            stressed=False,
            causes=shown > ROUGH,
        )
        if not rows:
            raise _nothing(f"{spec} {workload}", recordings)
        if len(rows) != 1:
            raise _several(f"{spec} {workload}", rows)
        return rows[0]

    row = at(place.training_run, shown)
    runs = runs_of(recordings, place, row)
    training_run = runs[0].training_run if runs else place.training_run
    return Side(name=row.label, row=row, training_run=training_run, rerun=at, runs=runs)


def _unmeasured(candidates: Sequence[Candidate], meant: str, effort: float) -> Side:
    """A place where nothing was measured. Raises ``UsageError``: several works are meant."""
    from costmodel import Side, rows_of

    [candidate, *others] = candidates
    rows = rows_of(
        [item.at({}) for item in candidates], effort=0.0 if others else effort, stressed=False, causes=effort > ROUGH
    )
    if others:
        raise _several(meant, rows)
    told = candidate.at({})
    runs: tuple[RunInSteps, ...] = ()
    if told.training_run.step_rollouts is not None:
        from costmodel import RunInSteps

        runs = (RunInSteps(told.value, told.training_run, told.prices),)

    def at(training_run: TrainingRun, effort: float = COARSE) -> Row:
        [row] = rows_of([replace(candidate, training_run=training_run).at({})], effort=effort, stressed=False)
        return row

    return Side(
        name=rows[0].label, row=rows[0], training_run=told.training_run, rerun=at, runs=runs, candidate=candidate
    )


def _nothing(meant: str, recordings: Sequence[Recording]) -> UsageError:
    cells = [cell.identity for item in recordings for cell in item.cells]
    known = ", ".join(dict.fromkeys(" ".join((item.label, item.tier, item.mode)) for item in cells))
    return UsageError(f"nothing was recorded of {meant}", fix=f"there are {known}; --compose adds a provider")


def _several(meant: str, rows: Sequence[Row]) -> UsageError:
    names = dict.fromkeys(f"{row.label} {row.identity.tier} {row.length} {row.identity.mode}" for row in rows)
    fix = "choose one with --tier, --mode, -n ACTIONS, or SUBSTRATE:key=value"
    return UsageError(f"{len(rows)} rows match {meant}: {', '.join(names)}", fix=fix)


def _assumptions(found: Decision, given: Sequence[Sequence[Assumption]]) -> list[Assumption]:
    """Return inputs that were given, published or assumed: shared inputs once, others with the side's name."""
    from taxtui.report.decision.sources import without_ranges

    sides = found.start, found.goal
    member = []
    for side, asked in zip(sides, given, strict=True):
        names = {item.name for item in asked}
        granted = side.row.attribution.assumptions if side.row.attribution else ()
        of_row = [*side.row.assumptions, *(item for item in granted if item.name not in names)]
        member.append([*(item for item in asked if item.name != "compose"), *without_ranges(side, of_row)])
    common = [item for item in member[0] if item in member[1]]
    group = [
        item._replace(name=f"{item.name} ({side.name})")
        for side, told in zip(sides, member, strict=True)
        for item in told
        if item not in common
    ]
    return [*common, *group]
