"""``taxtui sweep``: find and remove sandboxes that a run left behind."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import click

from taxtui import registry
from taxtui.errors import SubstrateError, SubstrateUnavailable
from taxtui.notation import parse_duration_ns, parse_substrate
from taxtui.runner import ledger
from taxtui.spec import SubstrateRef
from taxtui.substrate import Found, Substrate

_AT_ONCE: Final = 8


@click.command("sweep")
@click.option("--run", "run_id", metavar="ID", help="Only what this run made.")
@click.option("--older-than", metavar="AGE", default="0s", help="Only what is at least this old, such as 1h.")
@click.option("-s", "--substrate", "named", metavar="NAME[:key=value,…]", multiple=True, help="By default all.")
@click.option("--dry-run", is_flag=True, help="Only list.")
def command(run_id: str | None, older_than: str, named: tuple[str, ...], dry_run: bool) -> None:
    """Remove every sandbox that carries our labels, but those of runs that are still going on on this machine.

    --run ID removes also these. Where others use the same account or cluster, --older-than spares what they run.
    Exit code: 0 when nothing is left, 1 when something could not be removed, 3 when a substrate that was named
    cannot be used.
    """
    at_least_s = parse_duration_ns(older_than) / 1e9
    unswept = [entry for entry in ledger.entries() if run_id in (None, entry.run_id)]
    spared = {} if run_id else ledger.going_on()
    references = [parse_substrate(text) for text in named] or _everywhere(unswept)
    left: list[str] = []
    skipped: list[str] = []
    for reference in references:
        try:
            left += asyncio.run(_sweep(reference, run_id, at_least_s, spared, dry_run))
        except SubstrateUnavailable as error:
            if named:
                raise
            skipped.append(str(reference))
            click.echo(f"taxtui: not swept: {error}", err=True)
    for line in left:
        click.echo(f"taxtui: may still exist: {line}", err=True)
    if not (left or named or dry_run or at_least_s):
        for entry in unswept:
            if entry.run_id not in spared and not {str(ref) for ref in entry.substrates} & set(skipped):
                ledger.remove(entry.run_id)
    sys.exit(1 if left else 0)


def _everywhere(unswept: list[ledger.Entry]) -> list[SubstrateRef]:
    """Every installed substrate as it is by default, and as the runs that were not swept clean had used it."""
    references = [SubstrateRef(name=name) for name in registry.names()]
    references += [ref for entry in unswept for ref in entry.substrates]
    return list({str(ref): ref for ref in references}.values())


async def _sweep(
    reference: SubstrateRef, run_id: str | None, at_least_s: float, spared: dict[str, int], dry_run: bool
) -> list[str]:
    """What could not be removed, one line each. Raises ``SubstrateUnavailable``."""
    async with registry.build(reference) as substrate:
        found = [each for each in await substrate.find(run_id) if each.age_s >= at_least_s]
        left = await _remove(substrate, [each for each in found if each.run_id not in spared], dry_run)
    for run in sorted({each.run_id for each in found} & set(spared)):
        click.echo(f"taxtui: {reference}: run {run} is going on (process {spared[run]}), spared", err=True)
    return left


async def _remove(substrate: Substrate, found: list[Found], dry_run: bool) -> list[str]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def remove(each: Found) -> str:
        line = f"{substrate.name} {each.name} (run {each.run_id}, {each.age_s:.0f} s old)"
        if dry_run:
            click.echo(f"would remove {line}")
            return ""
        async with gate:
            try:
                await substrate.reap(each)
            except SubstrateError as error:
                return f"{line}: {error}"
        click.echo(f"removed {line}")
        return ""

    return [line for line in await asyncio.gather(*map(remove, found)) if line]
