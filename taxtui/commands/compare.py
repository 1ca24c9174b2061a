"""``taxtui compare``: two recordings, or the substrates of one; with ``--fail-above`` a check for CI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taxtui.errors import UsageError
from taxtui.options.rows import MODE, SUBSTRATE, TIER, choosing, taken
from taxtui.options.run_spread import LIMIT, run_sd_option
from taxtui.report.formats import BY_NAME, NAMES, Report

if TYPE_CHECKING:
    from costmodel import Projection
    from taxtui.options.rows import RowChoice

FOR_A_LIMIT = ("names", "junit", "summary", "pool_before", "pool_after")
"""Parameters that need ``--fail-above``."""


@click.command("compare")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="[AFTER]", required=False)
@click.option(
    "--fail-above",
    "limit",
    type=LIMIT,
    metavar="SHARE",
    help="Exit 5 if a metric got worse by more than this, 6 if the data cannot tell: 10%.",
)
@click.option(
    "--metric",
    "names",
    multiple=True,
    metavar="METRIC[=SHARE]",
    help="Metric of --fail-above, with its own limit, repeatable: p95:cold_start=25%.  "
    "[mean:trajectory, p50:action, failure_rate]",
)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write JUnit XML.")
@click.option(
    "--summary",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append the table as Markdown, for $GITHUB_STEP_SUMMARY.",
)
@click.option("--pool-before", multiple=True, metavar="RECORDING", help="Pool this recording with BEFORE, repeatable.")
@click.option("--pool-after", multiple=True, metavar="RECORDING", help="Pool this recording with AFTER, repeatable.")
@click.option("--length", metavar="N", help="Compare at this number of actions, as project --length.")
@choosing(SUBSTRATE, TIER, MODE)
@click.option("--pair-all", is_flag=True, help="Pair cells of a tier and length that differ in anything else too.")
@click.option("--reference", metavar="RECORDING", help="Recording whose dispatch bounds the tax of imported rows.")
@run_sd_option
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help="Output format.")
@click.pass_context
def command(
    context: click.Context,
    /,
    before: str,
    after: str | None,
    limit: float | None,
    length: str | None,
    pair_all: bool,
    reference: str | None,
    run_sd: float | None,
    form: str,
    **chosen: Any,
) -> None:
    """Compare AFTER with BEFORE, cell by cell: better, worse, no difference, or inconclusive.

    With one recording: compare its substrates, as taxtui report does. Cells are paired where substrate, variant, tier,
    length, mode and concurrency are equal. Intervals are 95 % and include how much runs differ: record both sides with
    --repeat 3 or more.

    Exit codes with --fail-above: 0 every metric stayed within its limit; 5 a metric got worse; 6 inconclusive.
    """
    others = {name: chosen.pop(name) for name in FOR_A_LIMIT}
    choice = taken(chosen)
    if after is None:
        from taxtui.commands.report import command as report

        if limit is not None:
            raise UsageError("--fail-above compares two recordings", fix="give BEFORE and AFTER")
        rows = {"substrates": choice.substrates, "tiers": choice.tiers, "modes": choice.modes}
        context.invoke(report, recordings=(before,), form=form, reference=reference, run_sd=run_sd, **rows)
        return
    if limit is not None:
        from taxtui.commands.compare_limit import check

        if length is not None or pair_all or reference is not None or choice != taken({}):
            raise UsageError(
                "--fail-above compares every cell as it was recorded",
                fix="leave -s, -t, --mode, --length, --pair-all and --reference out",
            )
        sides = (before, *others["pool_before"]), (after, *others["pool_after"])
        check(*sides, limit, others["names"], run_sd, form, others["junit"], others["summary"])
        return
    if given := next((name for name in FOR_A_LIMIT if others[name]), None):
        flag = "--metric" if given == "names" else f"--{given.replace('_', '-')}"
        raise UsageError(f"{flag} needs --fail-above", fix="add --fail-above 10%")
    _compare(before, after, length, choice, pair_all, reference, run_sd, form)


def _compare(
    before: str,
    after: str,
    actions: str | None,
    choice: RowChoice,
    pair_all: bool,
    reference: str | None,
    run_sd: float | None,
    form: str,
) -> None:
    """Print the changes of each pair of cells."""
    from costmodel.analysis.baseline import compare, unpaired
    from costmodel.analysis.project import project
    from costmodel.projection.tax_bounds import check_used
    from costmodel.recording.reader import Recording
    from costmodel.training.run import Demand
    from taxtui.commands.opening import located, opened_all, reference_of
    from taxtui.plan.notation import parse_length
    from taxtui.report.projected import changes
    from taxtui.report.row_limits import ANSWER

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
        raise UsageError(f"{before} and {after} share no equal cell", fix=f"try --length for another length{loose}")
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
