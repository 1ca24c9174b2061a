"""Starts by the clock: the schedule is data that the seed decides, and what was late against it is in ``response``."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean

import msgspec
import pytest

from costmodel import Recording, load
from costmodel.recording.events import Event, TrialStarted
from costmodel.recording.follower import read_events
from costmodel.recording.trial import RecordedTrial
from taxtui.errors import ScenarioError
from taxtui.plan import arrivals
from taxtui.plan.scenario import CellBlock, ScenarioFile
from taxtui.plan.scenario import plan as planned
from taxtui.plan.spec import CellPlan, Plan, Step, SubstrateRef, Tier
from taxtui.runner import preflight
from taxtui.runner import run as run_module
from taxtui.runner.arrivals import Block, blocks, schedule
from taxtui.runner.run import Run
from taxtui.sandboxes.fake import FakeOptions, FakeSubstrate
from tests.support.recorded import NoWatchdog

MS = 1_000_000
TIER = Tier(name="T", title="", requires=(), cycle=(Step(name="one", run="true"),))


def cell(arrival: str, trials: int, concurrency: int = 4) -> CellPlan:
    return CellPlan(
        substrate=SubstrateRef(name="fake"),
        tier=TIER,
        actions=1,
        trials=trials,
        warmup=0,
        concurrency=concurrency,
        arrival=arrivals.parse(arrival),
    )


def test_equal_gaps_and_exponential_ones_have_the_rate() -> None:
    assert arrivals.parse("open:20/s").starts_ns(4, Random(0)) == [0, 50 * MS, 100 * MS, 150 * MS]
    drawn = arrivals.parse("open:20/s:poisson").starts_ns(20_000, Random(1))
    assert drawn is not None
    gaps = [b - a for a, b in pairwise([0, *drawn])]
    assert min(gaps) >= 0
    assert fmean(gaps) == pytest.approx(50 * MS, rel=0.03)
    assert sum(gap < 50 * MS for gap in gaps) / len(gaps) == pytest.approx(1 - 0.3679, abs=0.02)


def test_a_schedule_is_plain_data_that_the_seed_decides() -> None:
    plans = [Plan(cells=(cell("open:100/s:poisson", 50),), seed=seed) for seed in (1, 1, 2)]
    (block,) = blocks(plans[0], [0])
    assert block == Block(0, 0, 50)
    first, again, other = (schedule(plan, block) for plan in plans)
    assert first == again != other
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(plans[0]), type=Plan) == plans[0]


def test_a_resumed_block_continues_its_schedule() -> None:
    plan = Plan(cells=(cell("open:1/s:poisson", 50),))
    (block,) = blocks(plan, [0])
    whole, rest = schedule(plan, block), schedule(plan, block._replace(trials=30, before=20))
    assert whole is not None
    assert rest == [due_ns - whole[20] for due_ns in whole[20:]]


def test_a_scenario_says_how_many_may_be_in_flight() -> None:
    block = CellBlock(substrates=["fake"], tiers=["T0"], actions=[1], arrival="open:20/s")
    with pytest.raises(ScenarioError, match="does not say how many trials may be in flight; add a concurrency"):
        planned(ScenarioFile(cells=[block]), Path())


async def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, *cells: CellPlan, stall_s: float = 0.0) -> Path:
    """A run against the shipped fake, whose first command answers nothing to anybody before ``stall_s`` are over."""
    fake = FakeSubstrate(FakeOptions(exec_s=0.001))
    over: list[float] = []

    async def stall() -> None:
        over.append(time.monotonic() + stall_s)
        while time.monotonic() < over[0]:
            await asyncio.sleep(0.01)

    fake.exec_hook = stall
    monkeypatch.setattr(preflight, "build", lambda ref: fake)
    monkeypatch.setattr(run_module, "Watchdog", NoWatchdog)
    path = folder / "run.msgpack"
    await Run(Plan(cells=cells), path, "20260101t000000z-00000000").execute()
    assert fake.alive == {}
    return path


def trials_of(path: Path) -> list[RecordedTrial]:
    found = load(path)
    assert isinstance(found, Recording)
    return [trial for one in found.cells for trial in one.trials]


async def test_a_stall_shows_in_the_response_of_all_that_were_due_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await measured(tmp_path, monkeypatch, cell("open:50/s", 40, concurrency=4), stall_s=0.6)
    started: list[TrialStarted] = []

    def take(event: Event) -> None:
        if isinstance(event, TrialStarted):
            started.append(event)

    read_events(path, take)
    due_ns = sorted(event.scheduled_ns for event in started)
    assert {b - a for a, b in pairwise(due_ns)} == {20 * MS}
    trials = sorted(trials_of(path), key=lambda trial: trial.start_ns - trial.measures.start_delay_ns)
    for number, trial in enumerate(trials[:25]):  # the stall ends no sooner than 600 ms after the first was due
        assert trial.measures.response_ns >= (600 - 20 * number) * MS
        if number >= 4:  # there are four lanes
            assert trial.measures.start_delay_ns >= (600 - 20 * number) * MS
    assert all(t.measures.response_ns == t.measures.held_ns + t.measures.start_delay_ns for t in trials)
