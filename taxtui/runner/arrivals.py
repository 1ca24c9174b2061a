"""In which order cells are measured, and when the trials of a block start."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from taxtui.plan.arrivals import Arrival
from taxtui.plan.spec import CellPlan, Plan

Launch = Callable[[int], Awaitable[None]]
"""Runs one trial to its end; its argument is when it was meant to start, as ``time.monotonic_ns()``."""


class Block(NamedTuple):
    """Trials of one cell that run without another cell's in between; drained before the next block."""

    cell: int
    number: int
    trials: int


def blocks(plan: Plan, cells: Sequence[int]) -> list[Block]:
    """The blocks of some of the plan's cells, in an order that the plan's seed decides.

    Each cell's blocks are spread evenly over the whole run with a random offset in each stretch, so that drift of the
    machine hits all cells alike, and a run that is cut short has measured each in proportion.
    """
    source = random.Random(plan.seed)
    placed = []
    for cell in cells:
        sizes = _sizes(plan.cells[cell])
        for index, trials in enumerate(sizes):
            placed.append(((index + source.random()) / len(sizes), Block(cell, index, trials)))
    return [block for _, block in sorted(placed)]


def _sizes(cell: CellPlan) -> list[int]:
    size = cell.arrival.block(cell.concurrency)
    full, rest = divmod(cell.trials, size)
    return [size] * full + ([rest] if rest else [])


async def run_block(trials: int, arrival: Arrival, concurrency: int, launch: Launch, stopped: asyncio.Event) -> None:
    """Start ``trials`` trials, each when ``arrival`` says that it is due, and wait for all of them.

    ``concurrency`` lanes; each takes the next trial when its last has ended. Once ``stopped`` is set nothing more is
    started.
    """
    began_ns = time.monotonic_ns()
    numbers = iter(range(trials))

    async def lane() -> None:
        for number in numbers:
            scheduled_ns = await when_due(arrival, number, began_ns, stopped)
            if scheduled_ns is None:
                return
            await launch(scheduled_ns)

    await asyncio.gather(*(lane() for _ in range(min(concurrency, trials))))


async def when_due(arrival: Arrival, number: int, began_ns: int, stopped: asyncio.Event) -> int | None:
    """Return when a block's trial number ``number`` is due: its instant on the monotonic clock, None once ``stopped``.

    ``began_ns`` is the instant at which the block began.
    """
    due_ns = arrival.due_ns(number)
    if due_ns is not None:
        await _until(began_ns + due_ns, stopped)
    if stopped.is_set():
        return None
    return time.monotonic_ns() if due_ns is None else began_ns + due_ns


async def _until(when_ns: int, stopped: asyncio.Event) -> None:
    left_ns = when_ns - time.monotonic_ns()
    if left_ns > 0:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_ns / 1e9):
                await stopped.wait()
