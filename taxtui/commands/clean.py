"""``taxtui clean``: find and remove sandboxes of ended measurements."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

import click

from taxtui import folders
from taxtui.errors import SubstrateError, UsageError
from taxtui.plan.durations import parse_duration_ns
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import SubstrateRef
from taxtui.runner.cleanup import ledger
from taxtui.runner.cleanup.reaping import reap_all
from taxtui.sandboxes import registry
from taxtui.sandboxes.kit.labels import END_OF_TIME_S
from taxtui.sandboxes.protocol import Found, Substrate
from taxtui.terminal_text import clean


@click.command("clean")
@click.option("--run", "run_id", metavar="ID", help="Remove sandboxes of this run only.")
@click.option("--older-than", metavar="AGE", default="0s", help="Remove sandboxes of at least this age: 1h.")
@click.option(
    "-s",
    "--substrate",
    "named",
    metavar="NAME[:key=value,…]",
    multiple=True,
    help="Search this substrate, repeatable.  [all]",
)
@click.option(
    "--force", is_flag=True, help="Remove sandboxes before their deadline too. This may kill a running measurement."
)
@click.option("--dry-run", is_flag=True, help="List sandboxes and remove nothing.")
def command(run_id: str | None, older_than: str, named: tuple[str, ...], force: bool, dry_run: bool) -> None:
    """Remove sandboxes with taxtui's labels that are past their deadline.

    Before the deadline a sandbox may belong to a run of any user or machine: taxtui keeps and counts these. --force
    removes them too; --run and --older-than select. Without options taxtui searches all substrates, and
    reports unreachable substrates.
    Exit codes: 0 nothing is left; 1 a sandbox could not be removed, or a sandbox of --run is kept; 3 a named substrate
    cannot be used.
    """
    if run_id is not None:
        folders.require_run_id(run_id, "--run")
    min_age_s = parse_duration_ns(older_than) / 1e9
    entries = [entry for entry in ledger.entries() if run_id in (None, entry.run_id)]
    requested = [parse_substrate(text) for text in named] or _all_substrates(entries)
    references = list({str(reference): reference for reference in requested}.values())
    failures: list[str] = []
    count = 0
    kept_runs: set[str] = set()
    unsearched: set[str] = set()
    unusable: SubstrateError | UsageError | None = None
    for reference in references:
        try:
            usable = reference if named else registry.without_unknown_options(reference)
            spared, failed, due = asyncio.run(_clean(usable, run_id, min_age_s, force, dry_run))
        except (SubstrateError, UsageError) as error:  # also a value in the ledger that this version refuses
            if named and isinstance(error, UsageError):
                raise
            unsearched.add(str(reference))
            if named:
                unusable = unusable or error  # raised after the search
            else:
                _say(f"taxtui: not searched: {error}", err=True)
            continue
        failures += failed
        count += len(spared) + due
        kept_runs |= {sandbox.run_id for sandbox in spared}
        for line in _kept_lines(reference, spared):
            _say(line, err=True)
    if not count:
        _say(_nothing_found(run_id, in_ledger=bool(entries) or run_id in ledger.live_runs()), err=True)
    for line in failures:
        _say(f"taxtui: may still exist: {line}", err=True)
    if not (failures or dry_run or min_age_s):
        searched = {str(reference) for reference in references} - unsearched
        _forget(entries, kept_runs, searched)
    if unusable is not None:
        raise unusable
    sys.exit(1 if failures or (run_id and kept_runs and not dry_run) else 0)


def _forget(entries: Sequence[ledger.LedgerEntry], kept_runs: set[str], searched: set[str]) -> None:
    """Remove ledger entries of runs without a sandbox on any searched substrate."""
    remaining = kept_runs | set(ledger.live_runs())
    for entry in entries:
        if entry.run_id not in remaining and {str(reference) for reference in entry.substrates} <= searched:
            ledger.remove(entry.run_id)


def _nothing_found(run_id: str | None, *, in_ledger: bool) -> str:
    """Return a line about an empty search; an id that this user's ledger lacks may be mistyped."""
    if run_id is None:
        return "taxtui: no sandbox was found"
    doubt = "" if in_ledger else ", and this user's ledger knows no such run: check the id if sandboxes should be there"
    return f"taxtui: no sandbox of run {run_id!r} was found{doubt}"


def _say(line: str, *, err: bool = False) -> None:
    """Print a line with texts of a provider."""
    click.echo(clean(line), err=err)


def _all_substrates(entries: Sequence[ledger.LedgerEntry]) -> list[SubstrateRef]:
    """Return every installed substrate with default options, and the substrates of ledger entries with theirs."""
    references = [SubstrateRef(name=name) for name in registry.names()]
    references += [reference for entry in entries for reference in entry.substrates]
    return list({str(reference): reference for reference in references}.values())


async def _clean(
    reference: SubstrateRef, run_id: str | None, min_age_s: float, force: bool, dry_run: bool
) -> tuple[list[Found], list[str], int]:
    """Return spared sandboxes, a line per failed removal, and the number of sandboxes to remove.

    Raises:
        SubstrateError: the substrate cannot be searched.
    """
    with registry.blamed(reference.name):
        async with registry.build(reference) as substrate:
            due: list[Found] = []
            spared: list[Found] = []
            for sandbox in await substrate.find(run_id):
                if sandbox.age_s >= min_age_s:
                    (due if force or not _may_be_used(sandbox) else spared).append(sandbox)
            return spared, await _remove(substrate, due, dry_run), len(due)


def _may_be_used(sandbox: Found) -> bool:
    """Whether the deadline is ahead; without a deadline, whether the run continues on this machine."""
    if sandbox.deadline_unix_s is None:
        return sandbox.run_id in ledger.live_runs()
    return sandbox.deadline_unix_s > time.time()


def _kept_lines(reference: SubstrateRef, spared: list[Found]) -> list[str]:
    """Return a line per run: number of kept sandboxes, owner, deadline and fix."""
    runs: dict[str, list[Found]] = {}
    for sandbox in spared:
        runs.setdefault(sandbox.run_id, []).append(sandbox)
    return [
        f"taxtui: {reference}: kept {len(group)} of run {run}{_owner(run)} until {_until(group)}; --force removes them"
        for run, group in sorted(runs.items())
    ]


def _owner(run_id: str) -> str:
    """Return the owner of a run, from this user's ledger on this machine."""
    if process := ledger.live_runs().get(run_id):
        return f", which is going on here (process {process}),"
    if any(entry.run_id == run_id for entry in ledger.entries()):
        return ", whose process on this machine has ended,"
    return ", of another user, machine or state folder,"


def _until(sandboxes: list[Found]) -> str:
    deadlines_s = [sandbox.deadline_unix_s for sandbox in sandboxes if sandbox.deadline_unix_s is not None]
    if not deadlines_s:
        return "it ends"
    last = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(min(max(deadlines_s), END_OF_TIME_S)))
    return f"the last one's deadline, {last}"


async def _remove(substrate: Substrate, due: list[Found], dry_run: bool) -> list[str]:
    """Remove sandboxes; return a line per failed removal."""

    def line(sandbox: Found) -> str:
        return f"{substrate.name} {sandbox.name} (run {sandbox.run_id}, {sandbox.age_s:.0f} s old)"

    if dry_run:
        for sandbox in due:
            _say(f"would remove {line(sandbox)}")
        return []
    failed = await reap_all(substrate, due, reaped=lambda sandbox: _say(f"removed {line(sandbox)}"))
    return [f"{line(sandbox)}: {' '.join(str(error).split()) or type(error).__name__}" for sandbox, error in failed]
