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
@click.option("-n", "--actions", type=int, help="Compare at this length instead of the recorded ones.")
@run_sd_option
@click.option("--format", "form", type=click.Choice(NAMES), default=NAMES[0], show_default=True)
def command(before: str, after: str, actions: int | None, run_sd: float | None, form: str) -> None:
    """Compare two recordings: the second against the first, with intervals that include how much runs differ.

    Each change differs, is a tie, or cannot be told from so few runs.
    """
    from costmodel.comparison import compare
    from costmodel.demand import Demand
    from costmodel.projection import project
    from taxtui.commands.opening import opened
    from taxtui.report.projected import changes

    demand = Demand(trajectories=1, workers=1, actions=actions, run_sd=run_sd)
    rows = [project([opened(name)], demand) for name in (before, after)]
    found = compare(rows[0], rows[1], run_sd)
    if not found:
        raise UsageError(
            f"{before} and {after} share no cell: no tier of theirs was run at the same length", fix="try -n"
        )
    told = Report(lambda: [changes.section(found, Path(before).name, Path(after).name)], lambda: changes.records(found))
    click.echo(BY_NAME[form].render(told))
