from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxtui.plan.arrivals import parse
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner.arrivals import blocks, when_due

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


@pytest.mark.parametrize("due_ns", [None, 3600 * 10**9])
async def test_a_stop_ends_the_wait_for_a_trial_at_once(due_ns: int | None) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, stopped.set)
    began_ns = time.monotonic_ns()
    if due_ns is None:
        assert (await when_due(due_ns, began_ns, stopped) or 0) >= began_ns
        await stopped.wait()
    assert await when_due(due_ns, began_ns, stopped) is None


async def test_a_trial_is_due_at_its_own_instant_however_late_it_starts() -> None:
    began_ns = time.monotonic_ns() - 10**9
    assert await when_due(5_000_000, began_ns, asyncio.Event()) == began_ns + 5_000_000
