"""``taxtui clean``: find and remove sandboxes that a run left behind."""

from __future__ import annotations

import asyncio
import sys
import time

import click

from taxtui.errors import SubstrateError
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

    Before the deadline a sandbox may belong to a run of any user or machine: taxtui keeps and counts it. --force
    removes such sandboxes too; --run and --older-than select. Without options taxtui searches all substrates, and
    reports unreachable substrates.
    Exit codes: 0 nothing is left; 1 a sandbox could not be removed, or a sandbox of --run is kept; 3 a named substrate
    cannot be used.
    """
    at_least_s = parse_duration_ns(older_than) / 1e9
    unswept = [entry for entry in ledger.entries() if run_id in (None, entry.run_id)]
    asked = [parse_substrate(text) for text in named] or _everywhere(unswept)
    places = {str(reference): registry.flavours(reference) for reference in asked}
    references = list({str(place): place for member in places.values() for place in member}.values())
    left: list[str] = []
    seen = 0
    spared: set[str] = set()
    skipped: list[str] = []
    unusable: SubstrateError | None = None
    for reference in references:
        try:
            result, failed, due = asyncio.run(_sweep(reference, run_id, at_least_s, force, dry_run))
        except SubstrateError as error:
            skipped.append(str(reference))
            if named and str(reference) in places:
                unusable = unusable or error  # raised once the others have been swept
            else:
                _say(f"taxtui: not searched: {error}", err=True)
            continue
        left += failed
        seen += len(result) + due
        spared |= {member.run_id for member in result}
        for line in _spared(reference, result):
            _say(line, err=True)
    if not seen:
        _say(_nothing(run_id, known=bool(unswept) or run_id in ledger.live_runs()), err=True)
    for line in left:
        _say(f"taxtui: may still exist: {line}", err=True)
    if not (left or dry_run or at_least_s):
        kept = spared | set(ledger.live_runs())
        swept = set(map(str, references)) - set(skipped)
        swept |= {text for text, member in places.items() if set(map(str, member)) <= swept}
        for entry in unswept:
            if entry.run_id not in kept and {str(ref) for ref in entry.substrates} <= swept:
                ledger.remove(entry.run_id)
    if unusable is not None:
        raise unusable
    sys.exit(1 if left or (run_id and spared and not dry_run) else 0)


def _nothing(run_id: str | None, *, known: bool) -> str:
    """No sandbox was found; an id that this user's ledger does not know may be mistyped."""
    if run_id is None:
        return "taxtui: no sandbox was found"
    doubt = "" if known else ", and this user's ledger knows no such run: check the id if sandboxes should be there"
    return f"taxtui: no sandbox of run {run_id!r} was found{doubt}"


def _say(line: str, *, err: bool = False) -> None:
    """A line with names and words that a provider gave."""
    click.echo(clean(line), err=err)


def _everywhere(unswept: list[ledger.LedgerEntry]) -> list[SubstrateRef]:
    """Every installed substrate as it is by default, and as the runs that were not swept clean had used it."""
    references = [SubstrateRef(name=name) for name in registry.names()]
    references += [ref for entry in unswept for ref in entry.substrates]
    return list({str(ref): ref for ref in references}.values())


async def _sweep(
    reference: SubstrateRef, run_id: str | None, at_least_s: float, force: bool, dry_run: bool
) -> tuple[list[Found], list[str], int]:
    """Print spared sandboxes and failed removals, one line each, and return the number that were due.

    Raises ``SubstrateUnavailable``.
    """
    async with registry.build(reference) as substrate:
        due: list[Found] = []
        spared: list[Found] = []
        for member in await substrate.find(run_id):
            if member.age_s >= at_least_s:
                (due if force or not _may_be_used(member) else spared).append(member)
        return spared, await _remove(substrate, due, dry_run), len(due)


def _may_be_used(found: Found) -> bool:
    """Until its deadline; what has lost the label that says it, while its run goes on on this machine."""
    if found.deadline_unix_s is None:
        return found.run_id in ledger.live_runs()
    return found.deadline_unix_s > time.time()


def _spared(reference: SubstrateRef, found: list[Found]) -> list[str]:
    """How many of each run, until when, and what there is to do about it."""
    runs: dict[str, list[Found]] = {}
    for member in found:
        runs.setdefault(member.run_id, []).append(member)
    return [
        f"taxtui: {reference}: kept {len(group)} of run {run}{_state(run)} until {_until(group)}; --force removes them"
        for run, group in sorted(runs.items())
    ]


def _state(run_id: str) -> str:
    """Return the owner of a run, from this user's ledger on this machine."""
    if process := ledger.live_runs().get(run_id):
        return f", which is going on here (process {process}),"
    if any(entry.run_id == run_id for entry in ledger.entries()):
        return ", whose process on this machine has ended,"
    return ", of another user, machine or state folder,"


def _until(found: list[Found]) -> str:
    last_s = max((member.deadline_unix_s for member in found if member.deadline_unix_s is not None), default=None)
    if last_s is None:
        return "it ends"
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(min(last_s, END_OF_TIME_S)))
    return f"the last one's deadline, {when}"


async def _remove(substrate: Substrate, found: list[Found], dry_run: bool) -> list[str]:
    """Print failed removals, one line each."""

    def line(each: Found) -> str:
        return f"{substrate.name} {each.name} (run {each.run_id}, {each.age_s:.0f} s old)"

    if dry_run:
        for each in found:
            _say(f"would remove {line(each)}")
        return []
    left = await reap_all(substrate, found, reaped=lambda each: _say(f"removed {line(each)}"))
    return [f"{line(each)}: {' '.join(str(error).split()) or type(error).__name__}" for each, error in left]
