"""Try damaged inputs by seed, and count the results: ``python -m tests.support.fuzz.fuzzing --help``."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import click

from tests.support.fuzz.fuzz_files import WITH_FILES
from tests.support.fuzz.fuzz_targets import IN_MEMORY

TARGETS: Final = IN_MEMORY | WITH_FILES
CORPUS: Final = Path(__file__).parent / "fuzz_corpus"
AT_ONCE: Final = 2000
"""Executions that are handed to a process together."""
MOST_TOLD: Final = 20
"""Failures of a kind that are printed; the rest is counted."""


def made(target: str, seed: int, number: int) -> bytes:
    """The input of one execution."""
    return TARGETS[target].make(Random(f"{seed}:{target}:{number}"))


def tried(target: str, data: bytes) -> tuple[str, str]:
    """What came of an input in a word, and where that is FAILED what was raised."""
    try:
        return TARGETS[target].check(data), ""
    except Exception as error:
        return "FAILED", f"{type(error).__name__}: {error}"


def corpus() -> Iterator[tuple[str, Path]]:
    """Target and file of everything that once failed."""
    for path in sorted(CORPUS.glob("*/*")):
        yield path.parent.name, path


def _some(seed: int, ends_s: float, batch: tuple[str, int, int]) -> tuple[str, Counter[str], list[tuple[int, str]]]:
    """Counts of one batch, and its failures by number; less than all of it once the time is up."""
    target, first, count = batch
    counts: Counter[str] = Counter()
    failures = []
    for number in range(first, first + count):
        if time.time() > ends_s:
            break
        word, why = tried(target, made(target, seed, number))
        counts[word] += 1
        if why:
            failures.append((number, why))
    return target, counts, failures


def _batches(executions: int, chosen: list[str]) -> list[tuple[str, int, int]]:
    """All targets side by side, each as often as its share says."""
    shares = sum(TARGETS[name].share for name in chosen)
    batches = []
    for name in chosen:
        wanted = -(-executions * TARGETS[name].share // shares)
        batches += [(at / wanted, name, at, min(AT_ONCE, wanted - at)) for at in range(0, wanted, AT_ONCE)]
    return [batch[1:] for batch in sorted(batches)]


@click.command()
@click.option("--executions", default=1_000_000, show_default=True)
@click.option("--seconds", default=1e9, help="End after so many, whatever is left; without a limit by default.")
@click.option("--seed", default=0, show_default=True)
@click.option("--target", "only", type=click.Choice(list(TARGETS)), help="This one alone.")
@click.option("--number", type=int, help="With --target: this execution alone, and its input on stdout.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
def main(executions: int, seconds: float, seed: int, only: str | None, number: int | None, jobs: int) -> None:
    """Print counts by target and what came of each, behind the failures; exit code 1 where there is one."""
    if number is not None:
        if only is None:
            raise click.UsageError("--number counts within one target; add --target")
        data = made(only, seed, number)
        click.echo(data, nl=False)
        click.echo(": ".join(tried(only, data)), err=True)
        return
    began = time.time()
    counts: dict[str, Counter[str]] = {}
    told: Counter[tuple[str, str]] = Counter()
    with ProcessPoolExecutor(jobs) as pool:
        work = partial(_some, seed, began + seconds)
        for target, found, failures in pool.map(work, _batches(executions, [only] if only else list(TARGETS))):
            counts.setdefault(target, Counter()).update(found)
            for failed, why in failures:
                told[target, why[:40]] += 1
                if told[target, why[:40]] <= MOST_TOLD:
                    again = f"python -m tests.support.fuzz.fuzzing --target {target} --seed {seed} --number {failed}"
                    click.echo(f"FAILED {target}: {why}\n    again: {again}")
    for target, found in counts.items():
        click.echo(f"{target}: {found.total():,} ({', '.join(f'{word} {n:,}' for word, n in sorted(found.items()))})")
    failed = sum(found["FAILED"] for found in counts.values())
    took_s = time.time() - began
    total = sum(found.total() for found in counts.values())
    click.echo(f"{total:,} executions in {took_s:.0f} s, {total / took_s:,.0f} a second: {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
