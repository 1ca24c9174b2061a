"""``taxtui compare``: what changed between two recordings, cell by cell."""

from __future__ import annotations

from pathlib import Path

import click

from taxtui.errors import UsageError
from taxtui.report.formats import BY_NAME, NAMES, Report
from taxtui.report.run_spread import run_sd_option


@click.command("compare")
@click.argument("before", metavar="RECORDING")
@click.argument("after", metavar="RECORDING")
@click.option("-n", "--actions", metavar="N", help="Compare at this length (as `project -n`), not the recorded.")
@click.option(
    "--reference", metavar="RECORDING", help="Its dispatch bounds the tax of what does not tell its commands' own time."
)
@run_sd_option
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
def command(
    before: str, after: str, actions: str | None, reference: str | None, run_sd: float | None, form: str
) -> None:
    """Compare two recordings: the second against the first, with intervals that include how much runs differ.

    Each change differs, is a tie, or cannot be told from so few runs.
    """
    from costmodel.bounds import check_used
    from costmodel.comparison import compare
    from costmodel.demand import Demand
    from costmodel.projection import project
    from taxtui.commands.opening import opened, reference_of
    from taxtui.plan.notation import parse_length
    from taxtui.report.projected import changes

    length = None if actions is None else parse_length(actions)
    demand = Demand(trajectories=1, workers=1, actions=length, run_sd=run_sd)
    bounds = None if reference is None else reference_of(reference)
    rows = [project([opened(name)], demand, None, bounds, each_level=True) for name in (before, after)]
    if bounds is not None:
        check_used(bounds, (row.identity.substrate for row in [*rows[0], *rows[1]] if row.tax_between_worker_hours))
    found = compare(rows[0], rows[1], run_sd)
    if not found:
        raise UsageError(
            f"{before} and {after} share no cell: no tier of theirs was run at the same length", fix="try -n"
        )
    names = Path(before).name, Path(after).name
    told = Report(lambda: changes.sections(found, *names, bounds), lambda: changes.records(found))
    click.echo(BY_NAME[form].render(told))
