"""``taxtui decide``: a page on moving a training run to another substrate."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taxtui.commands.files import load_recording, load_recordings, require_absent, write_new_file
from taxtui.commands.progress import progress
from taxtui.errors import UsageError
from taxtui.options.rows import ACTIONS, choosing
from taxtui.options.training import TYPED, TrainingCommand
from taxtui.options.training_runs import place_of, providers_of, stated_at, unmatched_sections
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel import (
        Assumption,
        CellIdentity,
        Decision,
        Pool,
        Provider,
        Published,
        Recording,
        Row,
        Side,
    )
    from taxtui.commands.decide_workload import Workload

UNDECIDED: Final = 6
"""The exit code of CAN'T TELL."""
ROUGH: Final = 0.01
"""Share of the usual simulation of each row with ``--quick``; causes are not separated."""
ROW_EFFORT: Final = 0.3
"""Share of the usual simulation of each row without ``--quick``."""
ROUGH_DIFFERENCE: Final = 0.1
"""Share of the usual simulation of the difference of both substrates with ``--quick``."""
UNUSED: Final = ("baseline",)
"""Options of a projection, but not of a decision."""


@click.command("decide", cls=TrainingCommand, params=list(TYPED), unused=UNUSED)
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
    from taxtui.commands.decide_workload import choose_start, choose_workload, estimated
    from taxtui.report.decision.record import record
    from taxtui.report.decision.sections import page
    from taxtui.report.formats import BY_NAME, Report
    from taxtui.report.projected.sources import input_values

    for path, option in ((output, "-o"), (html, "--html")):
        if path is not None:
            require_absent(path, option)
    if html is not None:
        from taxtui.report.page.shell import decision_page
    sources = load_recordings(recordings)
    cells = [cell.identity for source in sources if isinstance(source, Recording) for cell in source.cells]
    origin, choices = choose_start(start, goal, cells)
    if origin == goal:
        raise UsageError(f"--from and --to are both {origin}", fix="name two substrates")
    providers = providers_of(context, load_recording)
    providers += estimated(goal, cells, providers, load_recording)
    workload, workload_choices = choose_workload(context, origin, goal, cells, lengths)
    choices += workload_choices
    _check_prices(context, origin, goal, cells, providers)
    for choice in choices:
        click.echo(f"taxtui: {clean(f'{choice.name} {choice.value}: {choice.source}')}", err=True)
    effort, sides = ROUGH if quick else ROW_EFFORT, list["Side"]()
    for spec, opposite in ((origin, goal), (goal, origin)):
        with progress(f"simulating {clean(spec)}"):
            like = sides[0].row.identity if sides else None
            sides.append(_side(spec, opposite, sources, providers, context, workload, effort, like=like))
    for line in unmatched_sections(context, [side.row.identity for side in sides]):
        click.echo(f"taxtui: {clean(line)}", err=True)
    with progress("simulating the difference") as report:
        decision = decide_between(sides[0], sides[1], effort=ROUGH_DIFFERENCE if quick else 1.0, progress=report)
    with progress("looking for decisive inputs") as report:
        effects = input_effects(decision, report, rough=quick)
        turning_inputs = turns(decision, simulate=not quick)
    assumptions = [*choices, *_assumptions(decision, [input_values(context, spec) for spec in (origin, goal)])]
    memo = page(decision, effects, turning_inputs, assumptions, shlex.join(["taxtui", *sys.argv[1:]]), rough=quick)
    if html is not None:
        write_new_file([decision_page(memo).encode()], html, "--html")
        click.echo(html)
    if form is None:
        form = "text" if output is None else "json" if output.suffix == ".json" else "markdown"
    whole = Report(lambda: memo, lambda: [record(decision, effects, turning_inputs, assumptions)])
    text = BY_NAME["table" if form == "text" else form].render(whole)
    if output is not None:
        write_new_file([f"{text}\n".encode()], output, "-o")
        click.echo(output)
    elif html is None:
        click.echo(text)
    if decision.verdict == CANNOT_TELL:
        context.exit(UNDECIDED)


def _check_prices(
    context: click.Context, origin: str, goal: str, cells: Sequence[CellIdentity], providers: Sequence[Provider]
) -> None:
    """Refuse a training run in dollars, before any simulation, if only the provider has a price.

    ``decide_between`` refuses all remaining cases: a row shows whether a price sheet bills a measured substrate.
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
    opposite: str,
    sources: Sequence[Recording | Published],
    providers: Sequence[Provider],
    context: click.Context,
    workload: Workload,
    effort: float,
    *,
    like: CellIdentity | None,
) -> Side:
    """Return a substrate with its row.

    ``opposite``: the second substrate; an unmeasured substrate pulls the same images. ``like``: the cell of the second
    substrate's row, if known.

    Raises:
        UsageError: no row matches, or several.
    """
    from costmodel import Recording, RowCountError, candidates_of, estimated_side, matches_spec, measured_side

    def wanted(identity: CellIdentity) -> bool:
        return matches_spec(identity, spec) and workload.matches(identity)

    place, causes, name = place_of(context, spec), effort > ROUGH, f"{spec} {workload}"
    recordings = [source for source in sources if isinstance(source, Recording)]
    cells = [cell.identity for recording in recordings for cell in recording.cells]
    matching = [provider for provider in providers if provider.substrate == spec.partition(":")[0]]
    if matching and not any(map(wanted, cells)):
        images = place_of(context, opposite).training_run.images
        candidates = candidates_of(
            recordings,
            place,
            matching[-1],
            workload.matches,
            stated=stated_at(context, spec),
            images_gb=() if images is None else images.sizes_gb,
            like=like,
        )
        if len(candidates) == 1:
            return estimated_side(candidates[0], effort, causes=causes)
        raise _wrong_rows(name, [candidate.at({}).value for candidate in candidates], cells)
    try:
        return measured_side(sources, place, wanted, effort, causes=causes)
    except RowCountError as error:
        raise _wrong_rows(name, error.matching, cells) from None


def _wrong_rows(name: str, matching: Sequence[Pool | Row], recorded: Sequence[CellIdentity]) -> UsageError:
    """Return the error of no matching row, or of several."""
    if not matching:
        labels = ", ".join(dict.fromkeys(" ".join((cell.label, cell.tier, cell.mode)) for cell in recorded))
        return UsageError(f"nothing was recorded of {name}", fix=f"there are {labels}; --compose adds a provider")
    names = dict.fromkeys(
        f"{item.identity.label} {item.identity.tier} {item.length} {item.identity.mode}" for item in matching
    )
    fix = "choose one with --tier, --mode, -n ACTIONS, or SUBSTRATE:key=value"
    return UsageError(f"{len(matching)} rows match {name}: {', '.join(names)}", fix=fix)


def _assumptions(decision: Decision, values: Sequence[Sequence[Assumption]]) -> list[Assumption]:
    """Return typed, published and assumed inputs: an input of both sides once, an input of one side with its name.

    ``values``: the values of the training run of each side.
    """
    from taxtui.report.decision.sources import without_ranges

    sides = decision.start, decision.goal
    inputs = []
    for side, typed in zip(sides, values, strict=True):
        names = {item.name for item in typed}
        attributed = side.row.attribution.assumptions if side.row.attribution else ()
        of_row = [*side.row.assumptions, *(item for item in attributed if item.name not in names)]
        inputs.append([*(item for item in typed if item.name != "compose"), *without_ranges(side, of_row)])
    shared = [item for item in inputs[0] if item in inputs[1]]
    separate = [
        item._replace(name=f"{item.name} ({side.name})")
        for side, side_inputs in zip(sides, inputs, strict=True)
        for item in side_inputs
        if item not in shared
    ]
    return [*shared, *separate]
