"""The order of blocks, and the start times of trials within a block."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from taxtui.plan.spec import CellPlan, Plan


class Block(NamedTuple):
    """Consecutive trials of one cell; all end before the next block begins."""

    cell: int
    number: int
    trials: int
    before: int = 0  # trials of an earlier part of the run


def blocks(plan: Plan, cells: Sequence[int]) -> list[Block]:
    """Return the blocks of some cells of the plan, in an order by the plan's seed.

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


def schedule(plan: Plan, block: Block) -> Sequence[int] | None:
    """Return when each trial of a block starts, in ns after the block; None: as soon as a slot is free.

    The plan's seed decides the times. A resumed block continues the schedule at the next trial.
    """
    source = random.Random(f"{plan.seed}:{block.cell}:{block.number}")
    starts_ns = plan.cells[block.cell].arrival.starts_ns(block.before + block.trials, source)
    if starts_ns is None or not block.before:
        return starts_ns
    return [start_ns - starts_ns[block.before] for start_ns in starts_ns[block.before :]]


async def wait_until(due_ns: int, stopped: asyncio.Event) -> None:
    """Return at an instant of the monotonic clock, or once ``stopped``."""
    if (left_ns := due_ns - time.monotonic_ns()) > 0:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_ns / 1e9):
                await stopped.wait()
