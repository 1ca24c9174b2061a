"""In which order cells are measured, and when the trials of a block start."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from taxtui.plan.spec import Arrival, CellPlan, Plan

CLOSED_ROUNDS = 4
"""A closed block keeps its lanes filled for this many trials each, so that they fall out of step as in a long run."""

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
    size = cell.concurrency * (CLOSED_ROUNDS if cell.arrival.kind == "closed" else 1)
    full, rest = divmod(cell.trials, size)
    return [size] * full + ([rest] if rest else [])


async def run_block(trials: int, arrival: Arrival, concurrency: int, launch: Launch, stopped: asyncio.Event) -> None:
    """Start ``trials`` trials as ``arrival`` says and wait for all of them.

    sequential and closed: ``concurrency`` lanes, each starting its next trial when its last has ended. staggered: one
    every ``interval_ns``, held back while ``concurrency`` are in flight. burst: all at once, ``concurrency`` of them.
    Once ``stopped`` is set nothing more is started.
    """
    if arrival.kind == "staggered":
        await _staggered(trials, arrival.interval_ns, concurrency, launch, stopped)
        return
    left = trials

    async def lane() -> None:
        nonlocal left
        while left > 0 and not stopped.is_set():
            left -= 1
            await launch(time.monotonic_ns())

    await asyncio.gather(*(lane() for _ in range(min(concurrency, trials))))


async def _staggered(trials: int, interval_ns: int, concurrency: int, launch: Launch, stopped: asyncio.Event) -> None:
    free = asyncio.Semaphore(concurrency)
    began = time.monotonic_ns()

    async def one(scheduled_ns: int) -> None:
        try:
            await launch(scheduled_ns)
        finally:
            free.release()

    running = []
    for k in range(trials):
        scheduled_ns = began + k * interval_ns
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0, scheduled_ns - time.monotonic_ns()) / 1e9):
                await stopped.wait()
        await free.acquire()
        if stopped.is_set():
            break
        running.append(asyncio.ensure_future(one(scheduled_ns)))
    await asyncio.gather(*running)
