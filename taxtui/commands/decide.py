"""``taxtui decide``: a page on moving a training run to another substrate."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taxtui.commands.files import load_recordings, require_absent, write_new_file
from taxtui.commands.progress import progress
from taxtui.errors import UsageError
from taxtui.options.rows import ACTIONS, choosing
from taxtui.options.training import TYPED, TrainingCommand, is_typed
from taxtui.options.training_runs import name_sections, place_of, providers_of, stated_at, unmatched_sections
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel import Assumption, Decision

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
@click.option("--from", "start", metavar="SUBSTRATE", help="Recorded substrate to move from.  [the measured one]")
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
@click.option(
    "--quick", is_flag=True, help="Simulate in seconds: wider intervals, causes together, thresholds interpolated."
)
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
    from costmodel import CANNOT_TELL, Recording, decide_between, input_effects, matches_spec, sides
    from taxtui.commands.decide_workload import choose_start, choose_workload, estimated
    from taxtui.report.decision.record import record
    from taxtui.report.decision.sections import page
    from taxtui.report.formats import BY_NAME, Report
    from taxtui.report.projected.sources import input_values

    for path, option in ((output, "-o"), (html, "--html")):
        if path is not None:
            require_absent(path, option)
    if html is not None:
        if form is not None and output is None:
            raise UsageError(f"--format {form} does not go with --html alone", fix="add -o FILE")
        if output is not None and output.absolute() == html.absolute():
            raise UsageError(f"-o and --html are both {html}", fix="name two files")
        from taxtui.report.page.shell import decision_page
    sources = load_recordings(recordings)
    cells = [cell.identity for source in sources if isinstance(source, Recording) for cell in source.cells]
    origin, choices = choose_start(start, goal, cells)
    if origin == goal or all(matches_spec(cell, origin) == matches_spec(cell, goal) for cell in cells):
        raise UsageError(f"--from and --to are both {origin}", fix="name two substrates")
    providers = providers_of(context)
    other = [provider.substrate for provider in providers if provider.substrate != goal.partition(":")[0]]
    if other and is_typed(context, "compose"):
        raise UsageError(f"--compose {other[0]} is not --to {goal}", fix="compose the substrate of --to")
    providers += estimated(goal, cells, providers)
    workload, workload_choices = choose_workload(context, origin, goal, cells, lengths)
    choices += workload_choices
    name_sections(context, (origin, goal), [cell for cell in cells if workload.matches(cell)])
    for choice in choices:
        click.echo(f"taxtui: {clean(f'{choice.name} {choice.value}: {choice.source}')}", err=True)
    matching = [provider for provider in providers if provider.substrate == goal.partition(":")[0]]
    with progress(f"simulating {clean(origin)} and {clean(goal)}"):
        pair = sides(
            sources,
            place_of(context, origin),
            place_of(context, goal),
            workload.matches,
            matching[-1] if matching else None,
            stated=stated_at(context, goal),
            effort=ROUGH if quick else ROW_EFFORT,
            causes=not quick,
        )
    for line in unmatched_sections(context, [side.row.identity for side in pair]):
        click.echo(f"taxtui: {clean(line)}", err=True)
    with progress("simulating the difference"):
        decision = decide_between(*pair, effort=ROUGH_DIFFERENCE if quick else 1.0)
    with progress("looking for decisive inputs"):
        effects = input_effects(decision, rough=quick)
    assumptions = [*choices, *_assumptions(decision, [input_values(context, spec) for spec in (origin, goal)])]
    memo = page(decision, effects, assumptions, shlex.join(["taxtui", *sys.argv[1:]]), rough=quick)
    if html is not None:
        write_new_file([decision_page(memo).encode()], html, "--html")
        click.echo(html)
    if form is None:
        form = "text" if output is None else "json" if output.suffix == ".json" else "markdown"
    whole = Report(lambda: memo, lambda: [record(decision, effects, assumptions)])
    text = BY_NAME["table" if form == "text" else form].render(whole)
    if output is not None:
        write_new_file([f"{text}\n".encode()], output, "-o")
        click.echo(output)
    elif html is None:
        click.echo(text)
    if decision.verdict == CANNOT_TELL:
        context.exit(UNDECIDED)


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
