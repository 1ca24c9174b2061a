"""``taxtui tier``: make tiers from a repository."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from taxtui import starting
from taxtui.commands.files import write_new_file
from taxtui.errors import TaxtuiError, UsageError

if TYPE_CHECKING:
    from taxtui.plan.spec import Tier

TIMEOUT_S: Final = 120.0
"""Limit of a step in the trial of a new tier."""


@click.group("tier")
def command() -> None:
    """Make tiers from a repository of your own."""


@command.command("from-repo")
@click.argument("source", metavar="PATH_OR_URL")
@click.option("--name", help="Name of the tiers.  [the repository's own]")
@click.option("--test", "test", metavar="COMMAND", help="Command for the tests, in the repository's root.")
@click.option("--setup", multiple=True, metavar="COMMAND", help="Run this before the first test, repeatable.")
@click.option("--network", is_flag=True, help="Give the test tier a network.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="Folder for the new files.  [this one]",
)
def from_repo(
    source: str, name: str | None, test: str | None, setup: tuple[str, ...], network: bool, output: Path
) -> None:
    """Make an inspection tier and with --test a test tier of a repository, each checked by a trial on local.

    Takes the checked-out commit, without history. Writes NAME-inspect.toml, NAME-test.toml and the folder
    NAME.fixtures, the source of both; prints the paths. The tests run in a sandbox, with this machine's programs.
    Exit code 1: a tier failed the trial and was not written; a passing tier was written.
    """
    from taxtui.workloads import repository

    starting.interrupt_on_signals()
    if test is None and (setup or network):
        raise UsageError("--setup and --network are for the test tier", fix="add --test COMMAND")
    name = _tier_name(name or Path(source.rstrip("/")).absolute().name.removesuffix(".git"))
    fixtures = output / f"{name}.fixtures"
    kinds = ("inspect",) if test is None else ("inspect", "test")
    for path in (fixtures, *(output / f"{name}-{kind}.toml" for kind in kinds)):
        if path.exists():
            raise UsageError(f"{path} exists", fix="remove it, or choose another name with --name or -o")
    with tempfile.TemporaryDirectory(prefix="taxtui-tier-") as scratch:
        clone = Path(scratch, "fixtures")
        Path(scratch).chmod(0o755)  # the sandbox's user reads the clone
        clone.mkdir()
        snapshot = repository.clone(source, clone)
        tiers = [repository.inspection(name, snapshot)]
        _check_tier(tiers[0], clone, Path(scratch))
        failure: TaxtuiError | None = None
        if test is not None:
            try:
                test_tier = repository.testing(name, snapshot, test, setup, network=network)
                _check_tier(test_tier, clone, Path(scratch))
                tiers.append(test_tier)
            except TaxtuiError as error:
                failure = error  # raised once the inspection tier is written
        output.mkdir(parents=True, exist_ok=True)
        shutil.copytree(clone, fixtures)
    for tier in tiers:
        comment = f"Made by taxtui tier from-repo; run with -s local:fixtures={fixtures.name}, in this folder."
        path = output / f"{tier.name}.toml"
        write_new_file([repository.to_toml(tier, comment).encode()], path, "-o")
        path.chmod(0o600)  # a command or a line of the repository may have a credential
        click.echo(str(path))
    click.echo(str(fixtures))
    files = [word for tier in tiers for word in ("-t", f"{output / tier.name}.toml")]
    line = ["taxtui", "run", "-s", f"local:fixtures={fixtures}", *files, "-n", str(len(tiers[0].cycle))]
    click.echo(f"next: {shlex.join(line)}", err=True)
    if failure is not None:
        raise failure


def _check_tier(tier: Tier, fixtures: Path, scratch: Path) -> None:
    """Run a trial of a whole cycle. Raises ``TaxtuiError``: the trial failed."""
    from costmodel import events, read_events
    from taxtui import folders
    from taxtui.plan.spec import CellPlan, Plan, SubstrateRef
    from taxtui.runner.run import Run

    click.echo(f"trying {tier.name} in a sandbox on this machine", err=True)
    local = SubstrateRef(name="local", options={"fixtures": str(fixtures)})
    cell = CellPlan(substrate=local, tier=tier, actions=len(tier.cycle), trials=1, warmup=0)
    run = Run(Plan(cells=(cell,), timeout_s=TIMEOUT_S), scratch / f"{tier.name}.msgpack", folders.new_run_id())
    asyncio.run(run.execute())
    if run.control.write_error is not None:
        raise run.control.write_error
    recorded: list[events.Event] = []
    read_events(run.path, recorded.append)
    ends = [event for event in recorded if isinstance(event, events.TrialEnded)]
    if ends and ends[-1].outcome == events.OK:
        return
    reason = ends[-1].message or ends[-1].error if ends else "the run ended before its trial"
    advice = "give --test or --setup, and --network where it fetches something"
    raise TaxtuiError(f"{tier.name} failed its trial on local: {reason}; it was not written", fix=advice)


def _tier_name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    if not name:
        raise UsageError(f"{text!r} makes no name for a tier", fix="give one with --name")
    return name
