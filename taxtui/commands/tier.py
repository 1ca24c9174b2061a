"""``taxtui tier``: makes a tier from one's own repository, or from a trajectory."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taxtui.errors import TaxtuiError, UsageError
from taxtui.terminal_text import clean

if TYPE_CHECKING:
    from taxtui.plan.spec import Tier


@click.group("tier")
def command() -> None:
    """Make a tier from a trajectory or a repository of your own."""


@command.command("from-trajectory")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the tier.  [the file's own]")
@click.option("--trial", type=int, default=1, show_default=True, help="Number of the trajectory in a file of several.")
@click.option("--redact", is_flag=True, help="Write REDACTED for what looks like a credential, instead of refusing.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The tier.  [NAME.toml]")
def from_trajectory(file: Path, name: str | None, trial: int, redact: bool, output: Path | None) -> None:
    """Make a tier of the commands of a trajectory, with the distribution of the time between commands.

    FILE is of mini-swe-agent, SWE-agent, inspect_ai or Harbor (a result.json, or its ATIF trajectory.json). The tier
    holds the commands themselves: keep it where the trajectory may be kept. Nothing that they printed is in it.
    """
    from taxtui.importers.commands import commands_of
    from taxtui.importers.files import Unreadable
    from taxtui.workloads import tier_file
    from taxtui.workloads.trajectory import tier_of

    name = _tier_name(name or file.name.partition(".")[0])
    path = output or Path(f"{name}.toml")
    try:
        told = commands_of(file, trial)
    except Unreadable as error:
        raise Unreadable(f"{file}: {error.problem}", fix=error.fix) from error
    made = tier_of(name, told.called, told.image, redact=redact)
    which = f", number {trial} of {told.trials:,}" if told.trials > 1 else ""
    about = [f"Made by taxtui tier from-trajectory, of {told.source}{which}. It holds the commands of that trajectory."]
    tier_file.write_new(path, tier_file.to_toml(made.tier, about + made.notes, made.remarks))
    click.echo(str(path))
    for note in [f"{made.tier.title}{which}", *made.notes]:
        click.echo(clean(note), err=True)
    click.echo(f"next: taxtui run -t {path} -n {len(made.tier.cycle)}", err=True)


@command.command("from-repo")
@click.argument("source", metavar="PATH_OR_URL")
@click.option("--name", help="Name of the tiers.  [the repository's own]")
@click.option(
    "--test",
    "test",
    metavar="COMMAND",
    help="Command that runs the tests, in the repository's root.  [found in its files]",
)
@click.option("--setup", multiple=True, metavar="COMMAND", help="Before the first test; repeat for several.")
@click.option("--no-test", is_flag=True, help="The inspection tier alone.")
@click.option("--network", is_flag=True, help="The test tier needs one.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=".", help="The folder to write to."
)
def from_repo(
    source: str, name: str | None, test: str | None, setup: tuple[str, ...], no_test: bool, network: bool, output: Path
) -> None:
    """An inspection tier and a test tier of a repository, each checked by one trial on local before it is written.

    Takes the commit that is checked out, without its history. Writes NAME-inspect.toml, NAME-test.toml and the folder
    NAME.fixtures that both clone from; prints their paths. The tests run in a sandbox, with this machine's programs.
    Exit code 1: a tier failed its trial and was not written; the one that passed was.
    """
    from taxtui.workloads import credentials, repository, tier_file

    if no_test and (test or setup or network):
        raise UsageError("--no-test leaves out what --test, --setup and --network are for", fix="drop one of them")
    name = _tier_name(name or Path(source.rstrip("/")).absolute().name.removesuffix(".git"))
    for text in (test or "", *setup):
        if result := credentials.kinds(text):
            raise UsageError(f"a command holds {' and '.join(result)}", fix="let it read that from the environment")
    fixtures = output / f"{name}.fixtures"
    targets = [fixtures, output / f"{name}-inspect.toml", *([] if no_test else [output / f"{name}-test.toml"])]
    for path in targets:
        if path.exists():
            raise UsageError(f"{path} exists", fix="remove it, or name another with --name or -o")
    with tempfile.TemporaryDirectory(prefix="taxtui-tier-") as scratch:
        made = Path(scratch, "fixtures")
        Path(scratch).chmod(0o755)  # the sandbox's user reads the fixtures below
        made.mkdir()
        snapshot = repository.clone(source, made)
        tiers = [repository.inspection(name, snapshot)]
        refusal: TaxtuiError | None = None
        _checked(tiers[0], made, Path(scratch))
        if not no_test:
            tests = repository.TestCommand(test, ()) if test else snapshot.tests()
            if tests is None:
                refusal = UsageError(
                    f"{name}: no tests were found", fix="name what runs them with --test, or --no-test"
                )
            else:
                tier = repository.testing(name, snapshot, tests, setup, network=network)
                try:
                    _checked(tier, made, Path(scratch))
                except TaxtuiError as error:
                    refusal = error
                else:
                    tiers.append(tier)
        output.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, fixtures)
    for tier in tiers:
        about = [f"Made by taxtui tier from-repo; run with -s local:fixtures={fixtures.name}, in this folder."]
        path = output / f"{tier.name}.toml"
        tier_file.write_new(path, tier_file.to_toml(tier, about))
        click.echo(str(path))
    click.echo(str(fixtures))
    tier_options = " ".join(f"-t {output / tier.name}.toml" for tier in tiers)
    click.echo(f"next: taxtui run -s local:fixtures={fixtures} {tier_options} -n {len(tiers[0].cycle)}", err=True)
    if refusal is not None:
        raise refusal


def _tier_name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    if not name:
        raise UsageError(f"{text!r} makes no name for a tier", fix="give one with --name")
    return name


def _checked(tier: Tier, fixtures: Path, scratch: Path) -> None:
    """One trial of one whole cycle on local. Raises ``TaxtuiError`` with the step that did not prove its work."""
    from costmodel import Event, TrialEnded, read_events
    from costmodel import events as recording_events
    from taxtui import folders
    from taxtui.plan.spec import CellPlan, Plan, SubstrateRef
    from taxtui.runner.run import Run

    click.echo(f"trying {tier.name} in a sandbox on this machine", err=True)
    where = SubstrateRef(name="local", options={"fixtures": str(fixtures)})
    cell = CellPlan(substrate=where, tier=tier, actions=len(tier.cycle), trials=1, warmup=0)
    run = Run(Plan(cells=(cell,), timeout_s=120.0), scratch / f"{tier.name}.msgpack", folders.new_run_id())
    asyncio.run(run.execute())
    if run.control.write_error is not None:
        raise run.control.write_error
    events: list[Event] = []
    read_events(run.path, events.append)
    ends = [event for event in events if isinstance(event, TrialEnded)]
    if not ends or ends[-1].outcome != recording_events.OK:
        why = ends[-1].message or ends[-1].error if ends else "the run ended before its trial"
        from taxtui.commands.failed_step import printed

        if lines := asyncio.run(printed(tier, where, run.plan.timeout_s)):
            click.echo("the step that failed, run once more, printed last:", err=True)
            for line in lines:
                click.echo(f"    {clean(line)}", err=True)
        advice = "give --test or --setup, and --network where it fetches something"
        raise TaxtuiError(f"{tier.name} failed its trial on local: {why}; it was not written", fix=advice)
