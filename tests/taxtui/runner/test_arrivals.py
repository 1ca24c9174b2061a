"""Blocks and starts by the clock: data that the seed decides; what was late against it is in ``response``."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import Recording, load
from costmodel.recording.events import TrialStarted
from taxtui.errors import ScenarioError
from taxtui.plan.arrivals import parse
from taxtui.plan.scenario import CellBlock, ScenarioFile
from taxtui.plan.scenario import plan as planned
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner.arrivals import Block, blocks, schedule, wait_until
from taxtui.sandboxes.fake import FakeSubstrate
from tests.taxtui.runner.test_engine import execute, fake, of

__all__ = ["fake"]
MS = 1_000_000
TIER = Tier(name="T", title="", requires=(), cycle=(Step(name="one", run="true"),))


def plan(arrival: str, *cells: tuple[int, int], seed: int = 0) -> Plan:
    """Cells as (trials, concurrency)."""
    fields = {"substrate": SubstrateRef(name="fake"), "tier": TIER, "warmup": 0, "arrival": parse(arrival)}
    made = [
        CellPlan(actions=number + 1, trials=trials, concurrency=width, **fields)  # type: ignore[arg-type]
        for number, (trials, width) in enumerate(cells)
    ]
    return Plan(cells=tuple(made), seed=seed)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 8)), min_size=1, max_size=5),
    st.sampled_from(["sequential", "closed", "burst"]),
    st.integers(0, 99),
)
def test_blocks_hold_every_trial_once(cells: list[tuple[int, int]], arrival: str, seed: int) -> None:
    order = blocks(plan(arrival, *cells, seed=seed), range(len(cells)))
    trials = Counter[int]()
    for block in order:
        trials[block.cell] += block.trials
        assert block.trials <= cells[block.cell][1] * (4 if arrival == "closed" else 1)
    assert dict(trials) == {k: count for k, (count, _) in enumerate(cells)}
    assert order == blocks(plan(arrival, *cells, seed=seed), range(len(cells)))


def test_a_run_that_is_cut_short_has_measured_all_cells_in_proportion() -> None:
    order = blocks(plan("burst", (100, 1), (30, 1)), range(2))
    half = Counter(block.cell for block in order[:65])
    assert abs(half[0] - 50) <= 2
    assert abs(half[1] - 15) <= 2


async def test_a_stop_ends_the_wait_for_a_trial_at_once() -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, stopped.set)
    await wait_until(time.monotonic_ns() + 3600 * 10**9, stopped)
    assert stopped.is_set()


def test_equal_gaps_and_exponential_ones_have_the_rate() -> None:
    assert parse("open:20/s").starts_ns(4, Random(0)) == [0, 50 * MS, 100 * MS, 150 * MS]
    drawn = parse("open:20/s:poisson").starts_ns(20_000, Random(1))
    assert drawn is not None
    gaps = [b - a for a, b in pairwise([0, *drawn])]
    assert min(gaps) >= 0
    assert fmean(gaps) == pytest.approx(50 * MS, rel=0.03)
    assert sum(gap < 50 * MS for gap in gaps) / len(gaps) == pytest.approx(1 - 0.3679, abs=0.02)


def test_a_schedule_is_plain_data_that_the_seed_decides_and_a_resumed_block_continues() -> None:
    plans = [plan("open:100/s:poisson", (50, 4), seed=seed) for seed in (1, 1, 2)]
    (block,) = blocks(plans[0], [0])
    assert block == Block(0, 0, 50)
    first, again, other = (schedule(each, block) for each in plans)
    assert first == again != other
    assert first is not None
    rest = schedule(plans[0], block._replace(trials=30, before=20))
    assert rest == [due_ns - first[20] for due_ns in first[20:]]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(plans[0]), type=Plan) == plans[0]


def test_a_scenario_says_how_many_may_be_in_flight() -> None:
    block = CellBlock(substrates=["fake"], tiers=["T0"], actions=[1], arrival="open:20/s")
    with pytest.raises(ScenarioError, match="does not say how many trials may be in flight; add a concurrency"):
        planned(ScenarioFile(cells=[block]), Path())


async def test_a_stall_shows_in_the_response_of_all_that_were_due_meanwhile(
    tmp_path: Path, fake: FakeSubstrate
) -> None:
    over_s: list[float] = []

    async def stall() -> None:
        over_s.append(time.monotonic() + 0.6)
        while time.monotonic() < over_s[0]:
            await asyncio.sleep(0.01)

    fake.exec_hook = stall
    run, got = await execute(tmp_path, plan("open:50/s", (40, 4)))
    due_ns = sorted(event.scheduled_ns for event in of(got, TrialStarted))
    assert {b - a for a, b in pairwise(due_ns)} == {20 * MS}
    found = load(run.path)
    assert isinstance(found, Recording)
    trials = [trial for cell in found.cells for trial in cell.trials]
    trials.sort(key=lambda trial: trial.start_ns - trial.measures.start_delay_ns)
    for number, trial in enumerate(trials[:25]):  # the stall ends no sooner than 600 ms after the first was due
        assert trial.measures.response_ns >= (600 - 20 * number) * MS
        if number >= 4:  # there are four lanes
            assert trial.measures.start_delay_ns >= (600 - 20 * number) * MS
    assert all(t.measures.response_ns == t.measures.held_ns + t.measures.start_delay_ns for t in trials)
