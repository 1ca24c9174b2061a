"""``taxtui compare``: what changed from one recording to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taxtui.errors import UsageError
from taxtui.options.rows import MODE, SUBSTRATE, TIER, choosing, taken
from taxtui.options.run_spread import run_sd_option
from taxtui.report.formats import BY_NAME, NAMES, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costmodel import Projection
    from taxtui.options.rows import RowChoice


@click.command("compare")
@click.argument("before", metavar="RECORDING")
@click.argument("after", metavar="RECORDING")
@click.option("-n", "--actions", metavar="N", help="Compare at this length (as `project -n`), not the recorded.")
@choosing(SUBSTRATE, TIER, MODE)
@click.option(
    "--pair-all",
    is_flag=True,
    help="Pair what is left by tier and length, whatever its substrate, mode or concurrency.",
)
@click.option(
    "--reference", metavar="RECORDING", help="Its dispatch bounds the tax of what does not tell its commands' own time."
)
@run_sd_option
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
def command(
    before: str,
    after: str,
    actions: str | None,
    pair_all: bool,
    reference: str | None,
    run_sd: float | None,
    form: str,
    **chosen: Any,
) -> None:
    """Compare two recordings: the second against the first, with intervals that include how much runs differ.

    Cells pair up that are equal: substrate and variant, tier, length, mode, and how it was asked for. Each change
    differs, is a tie, or cannot be told from so few runs. What was not paired is named.
    """
    from costmodel.analysis.baseline import compare, unpaired
    from costmodel.analysis.project import project
    from costmodel.projection.tax_bounds import check_used
    from costmodel.recording.reader import Recording
    from costmodel.training.run import Demand
    from taxtui.commands.opening import located, opened_all, reference_of
    from taxtui.plan.notation import parse_length
    from taxtui.report.projected import changes
    from taxtui.report.row_limits import ANSWER

    choice = taken(chosen)
    length = None if actions is None else parse_length(actions)
    demand = Demand(trajectories=1, workers=1, actions=length, run_sd=run_sd)
    bounds = None if reference is None else reference_of(reference)
    sources = opened_all([before, after])
    identities = [cell.identity for one in sources if isinstance(one, Recording) for cell in one.cells]
    asked = [one for one in identities if choice.means(one)]
    ANSWER.check(len(asked), [located(before), located(after)], "--tier, --mode or --substrate")
    wanted = choice.means if 0 < len(asked) < len(identities) else None
    rows = [
        project([source], demand, None, bounds, each_level=True, wanted=wanted, stressed=False) for source in sources
    ]
    if bounds is not None:
        check_used(bounds, (row.identity.substrate for row in [*rows[0], *rows[1]] if row.tax_between_worker_hours))
    one, other = _chosen(rows[0], rows[1], choice)
    found = compare(one, other, run_sd, pair_all=pair_all)
    if not found:
        loose = "" if pair_all else ", or --pair-all to pair other cells of a tier and length"
        raise UsageError(f"{before} and {after} share no equal cell", fix=f"try -n for another length{loose}")
    left = unpaired(one, other, found)
    names = Path(before).name, Path(after).name
    told = Report(lambda: changes.sections(found, left, *names, bounds), lambda: changes.records(found))
    click.echo(BY_NAME[form].render(told))
    if not BY_NAME[form].people:
        for line in changes.not_paired(left, *names):
            click.echo(f"taxtui: {line}", err=True)


def _chosen(
    before: Sequence[Projection], after: Sequence[Projection], choice: RowChoice
) -> tuple[list[Projection], list[Projection]]:
    """The rows that are meant, of which each side may have some."""
    wanted = {id(row) for row in choice.of([*before, *after])}
    return [row for row in before if id(row) in wanted], [row for row in after if id(row) in wanted]
