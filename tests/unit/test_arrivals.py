from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.plan.arrivals import parse
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner.arrivals import blocks, run_block

TIER = Tier(name="T", title="", cycle=(Step(name="one", run="true"),))


def plan(*cells: tuple[int, int], arrival: str = "burst", seed: int = 0) -> Plan:
    """Cells as (trials, concurrency)."""
    made = [
        CellPlan(
            substrate=SubstrateRef(name="fake"),
            tier=TIER,
            actions=k + 1,
            trials=trials,
            concurrency=width,
            arrival=parse(arrival),
        )
        for k, (trials, width) in enumerate(cells)
    ]
    return Plan(cells=tuple(made), seed=seed)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 8)), min_size=1, max_size=5),
    st.sampled_from(["sequential", "closed", "burst"]),
    st.integers(0, 99),
)
def test_blocks_hold_every_trial_once(cells: list[tuple[int, int]], arrival: str, seed: int) -> None:
    order = blocks(plan(*cells, arrival=arrival, seed=seed), range(len(cells)))
    trials = Counter[int]()
    for block in order:
        trials[block.cell] += block.trials
        assert block.trials <= cells[block.cell][1] * (4 if arrival == "closed" else 1)
    assert dict(trials) == {k: count for k, (count, _) in enumerate(cells)}
    assert order == blocks(plan(*cells, arrival=arrival, seed=seed), range(len(cells)))


def test_a_run_that_is_cut_short_has_measured_all_cells_in_proportion() -> None:
    order = blocks(plan((100, 1), (30, 1)), range(2))
    half = Counter(block.cell for block in order[:65])
    assert abs(half[0] - 50) <= 2
    assert abs(half[1] - 15) <= 2


def test_the_seed_decides_the_order() -> None:
    assert blocks(plan((20, 1), (20, 1), seed=1), range(2)) != blocks(plan((20, 1), (20, 1), seed=2), range(2))


def starts(arrival: str, trials: int) -> Sequence[int] | None:
    return parse(arrival).starts_ns(trials, Random(0))


class Lanes:
    """Counts how many trials are in flight, and notes when each was scheduled."""

    def __init__(self, takes_s: float = 0.01) -> None:
        self.takes_s = takes_s
        self.now = self.most = 0
        self.scheduled: list[int] = []

    async def launch(self, scheduled_ns: int) -> None:
        self.scheduled.append(scheduled_ns)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.takes_s)
        self.now -= 1


@pytest.mark.parametrize(
    ("kind", "trials", "width", "most"), [("sequential", 3, 1, 1), ("closed", 8, 2, 2), ("burst", 5, 5, 5)]
)
async def test_concurrency(kind: str, trials: int, width: int, most: int) -> None:
    lanes = Lanes()
    await run_block(trials, starts(kind, trials), width, lanes.launch, asyncio.Event())
    assert (len(lanes.scheduled), lanes.most, lanes.now) == (trials, most, 0)


async def test_staggered_starts_are_scheduled_at_the_interval_even_when_lanes_are_full() -> None:
    lanes = Lanes(takes_s=0.03)
    began = time.monotonic_ns()
    await run_block(4, starts("staggered:5ms", 4), 2, lanes.launch, asyncio.Event())
    gaps = {b - a for a, b in zip(lanes.scheduled, lanes.scheduled[1:], strict=False)}
    assert gaps == {5_000_000}
    assert lanes.scheduled[0] >= began
    assert lanes.most == 2


@pytest.mark.parametrize("arrival", ["closed", "staggered:1h"])
async def test_a_stop_ends_the_block_at_once_however_long_the_interval(arrival: str) -> None:
    stopped = asyncio.Event()
    started = 0

    async def launch(scheduled_ns: int) -> None:
        nonlocal started
        started += 1
        asyncio.get_running_loop().call_later(0.01, stopped.set)
        await stopped.wait()

    await run_block(100, starts(arrival, 100), 1, launch, stopped)
    assert started == 1
