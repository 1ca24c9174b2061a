"""Strikes at runs, each from a seed: ``python -m tests.support.chaos [--cases N] [--seed S] [--only K] [--kills]``.

A case is one run and one strike at a random moment. The run ends with documented exit codes, outcomes and errors; its
recording can be read; the next run says what is left, and ``taxtui clean`` removes it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import click

from tests.support.chaos import places, processes, providers
from tests.support.chaos.cases import PROBLEMS, Case, Verdict, cases
from tests.support.chaos.strikes import KILLS, STRIKES

PROCESSES: Final = ("local:isolation=plain", "local:isolation=bwrap", "docker")
STRUCK: Final = {place: list(STRIKES) for place in PROCESSES} | providers.KINDS
"""What is struck, and how."""
KILLS_EACH: Final = 50


@click.command()
@click.option("--cases", "count", default=500, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--only", type=int, help="This case alone.")
@click.option("--kills", is_flag=True, help=f"{KILLS_EACH} kills of runs, workers or guardians on every real place.")
@click.option("--place", help="This group of cases alone; with --kills a place as -s takes it.")
@click.option("--jobs", default=4, show_default=True, help="Runs at once.")
def main(count: int, seed: int, only: int | None, kills: bool, place: str | None, jobs: int) -> None:
    """Strike, and count."""
    began = time.monotonic()
    groups = _killed(place) if kills else {group: STRUCK[group] for group in STRUCK if place in (None, group)}
    if not groups:
        raise click.UsageError(f"nothing to strike; there are: {', '.join(STRUCK)}")
    more = "".join((" --kills" if kills else "", f" --place '{place}'" if place else ""))
    wanted = KILLS_EACH * len(groups) if kills else count
    numbers = (0, wanted) if only is None else (only, only + 1)
    chosen = list(itertools.islice(cases(groups, seed), *numbers))
    verdicts = asyncio.run(tried(chosen, jobs, lambda verdict: _say(verdict, more)))
    sys.exit(_counted(verdicts, time.monotonic() - began))


def _killed(place: str | None) -> dict[str, list[str]]:
    groups = {}
    for each in places.registered():
        if place in (None, each):
            if why := places.complaint(each):
                click.echo(f"not here: {each}: {why}", err=True)
            else:
                groups[each] = list(KILLS)
    return groups


async def tried(chosen: list[Case], jobs: int, said: Callable[[Verdict], object]) -> list[Verdict]:
    """Processes ``jobs`` at a time, and beside them what fails within this one; ``said`` hears of each at once."""
    verdicts, several = [], asyncio.Semaphore(jobs)

    async def one(case: Case) -> None:
        async with several:
            verdict = await asyncio.to_thread(processes.struck, case)
        verdicts.append(verdict)
        said(verdict)

    inside = [case for case in chosen if case.group in providers.GROUPS]
    others = [case for case in chosen if case not in inside]
    for place in {case.group for case in others}:
        await asyncio.to_thread(places.complaint, place)  # once, before several threads ask
    beside = [asyncio.ensure_future(one(case)) for case in others]
    async for verdict in providers.tried(inside):
        verdicts.append(verdict)
        said(verdict)
    await asyncio.gather(*beside)
    return verdicts


def again(case: Case, more: str = "") -> str:
    return f"python -m tests.support.chaos{more} --seed {case.seed} --only {case.number}"


def _say(verdict: Verdict, more: str) -> None:
    case = verdict.case
    for problem, words in verdict.problems:
        click.echo(f"FAILED {case.group}, {case.kind}: {problem}: {words}\n    again: {again(case, more)}")


def _counted(verdicts: list[Verdict], took_s: float) -> int:
    tried = [verdict for verdict in verdicts if not verdict.skipped]
    for what, counts in (
        ("by place", Counter(verdict.case.group for verdict in tried)),
        ("by strike", Counter(verdict.case.kind for verdict in tried)),
        ("by end", Counter(verdict.ending for verdict in tried)),
        ("not here", Counter(verdict.skipped for verdict in verdicts if verdict.skipped)),
    ):
        if counts:
            click.echo(f"{what}: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}")
    failed = Counter(problem for verdict in tried for problem in dict(verdict.problems))
    told = ", ".join(f"{failed[problem]} {problem}" for problem in PROBLEMS)
    click.echo(f"{len(tried)} cases in {took_s:.0f} s: {told}")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_STATE_HOME": folder, "XDG_DATA_HOME": folder}
        main()
