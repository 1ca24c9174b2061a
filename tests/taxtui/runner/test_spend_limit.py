"""What a run may use up: sandboxes, and dollars by a price sheet."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from costmodel.errors import PriceError
from costmodel.pricing.sheet import Prices, load_prices
from taxtui.plan.spec import CellPlan, Limits, Plan, Step, SubstrateRef, Tier
from taxtui.runner.run_control import Progress
from taxtui.runner.spend_limit import SpendLimit, least_usd
from taxtui.sandboxes.fake import FakeSubstrate

HOUR_NS = 3_600_000_000_000
TIER = Tier(name="T", title="", cycle=(Step(name="one", run="true"),))
CELL = CellPlan(substrate=SubstrateRef(name="fake"), tier=TIER, actions=1)


@pytest.fixture
def sheet(tmp_path: Path) -> Prices:
    """Six dollars an hour, billed by the minute, six minutes at least: 0.60 at least."""
    path = tmp_path / "prices.toml"
    path.write_text(
        'title = "ours"\ndate = 2026-01-01\n[[sandbox]]\nsubstrate = "fake"\nusd_per_hour = 6\n'
        'minimum_s = 360\nincrement_s = 60\nsource = "a test"\n'
    )
    return load_prices(path)


def limit(prices: Prices | None, clock: list[int] | None = None, **plan: float) -> SpendLimit:
    """Its clock stands at the last number of ``clock``."""
    made = SpendLimit(msgspec.structs.replace(Plan(cells=(CELL,)), **plan), prices, lambda: (clock or [0])[-1])
    made.price(0, FakeSubstrate(), Limits())
    return made


def begin(limits: SpendLimit, trial: int) -> None:
    limits.began(trial, 0)
    limits.started(trial)


def test_never_more_sandboxes_than_said() -> None:
    two, free = limit(None, max_sandboxes=2), limit(None)
    begin(two, 1)
    two.ended(1)
    assert two.refuses(0) == ""
    begin(two, 2)
    assert two.refuses(0) == "--max-sandboxes 2 is used up"
    for number in range(3):
        begin(free, number)
    assert free.refuses(0) == ""


@pytest.mark.parametrize(
    ("max_cost_usd", "hours", "ended", "refusal"),
    [
        (1.5, 0, False, ""),  # 0.60 in flight and 0.60 more
        (1.1, 0, False, "--max-cost 1.1 USD would be passed, 0.60 USD are committed"),
        (6.5, 1, False, "--max-cost 6.5 USD would be passed, 6.00 USD are committed"),  # by its own clock
        (10.0, 1, True, "--max-cost 10 USD would be passed, 6.00 USD are committed"),  # another hour would pass it
    ],
)
def test_dollars_in_flight_and_spent_are_committed(
    max_cost_usd: float, hours: int, ended: bool, refusal: str, sheet: Prices
) -> None:
    clock = [0]
    dollars = limit(sheet, clock, max_cost_usd=max_cost_usd)
    begin(dollars, 1)
    clock.append(hours * HOUR_NS)
    if ended:
        dollars.ended(1)
    assert dollars.refuses(0) == refusal


def test_a_trial_that_waits_for_its_start_costs_the_least(sheet: Prices) -> None:
    clock = [0]
    dollars = limit(sheet, clock, max_cost_usd=1.5)
    dollars.began(1, 0)
    dollars.began(2, 0)
    clock.append(HOUR_NS)
    assert "1.20 USD are committed" in dollars.refuses(0)
    dollars.withdrawn(2)
    assert dollars.refuses(0) == ""
    dollars.began(2, 0)
    dollars.ended(2)  # lost with its worker: it may have run
    assert "1.20 USD are committed" in dollars.refuses(0)


def test_a_price_that_is_missing_is_asked_for(sheet: Prices) -> None:
    other, unknown = FakeSubstrate(), FakeSubstrate()
    other.variant = "large"
    assert least_usd(sheet, FakeSubstrate(), Limits()) == least_usd(sheet, other, Limits()) == 0.6
    unknown.name = "elsewhere"  # type: ignore[misc]
    with pytest.raises(PriceError, match='substrate = "elsewhere"'):
        limit(sheet).price(1, unknown, Limits())


@pytest.mark.parametrize(
    ("planned", "ended", "in_flight", "before", "left_s"),
    [
        (10, 4, 0, 0, 15.0),
        (10, 10, 0, 0, 0.0),
        (10, 6, 0, 5, 40.0),  # a resumption: the pace is that of this part
        (10, 5, 0, 5, None),
        (6, 1, 5, 0, 10 * 2.5 / 3.5),  # all started together: the others are nearly done
    ],
)
def test_the_pace_so_far_gives_the_remaining_time(
    planned: int, ended: int, in_flight: int, before: int, left_s: float | None
) -> None:
    progress = Progress(planned=planned, ended=ended, in_flight=in_flight, before=before)
    assert progress.left_s(10.0) == (left_s and pytest.approx(left_s))
