"""The shipped tiers as data: that they prove their work is shown here, that they work in test_workloads_sandboxes."""

import re

import pytest

from taxtui.plan.scenario import load_tier
from taxtui.plan.spec import Tier
from taxtui.workloads import fixtures

SHIPPED = ["T0", "T1", "T2"]


@pytest.fixture(params=SHIPPED)
def tier(request: pytest.FixtureRequest) -> Tier:
    return load_tier(request.param)


def test_a_cycle_is_ten_different_actions(tier: Tier) -> None:
    assert len({step.run for step in tier.cycle}) == len({step.name for step in tier.cycle}) == len(tier.cycle) == 10


def test_the_first_action_echoes_the_nonce(tier: Tier) -> None:
    assert "$TAXTUI_NONCE" in tier.cycle[0].run
    assert "{nonce}" in tier.cycle[0].expect_stdout


def test_every_step_proves_that_it_worked(tier: Tier) -> None:
    unproven = [s.name for s in (*tier.setup, *tier.cycle) if not s.expect_stdout and s.expect_exit == 0]
    assert unproven == (["true"] if tier.name == "T0" else [])


def test_no_tier_asks_for_a_network(tier: Tier) -> None:
    assert not tier.network
    steps = [tier.preload, *(step.run for step in (*tier.setup, *tier.cycle))]
    assert not [run for run in steps if re.search(r"https?:|ssh:|git@", run)]


def test_the_tree_is_the_one_that_the_fixtures_are_checked_for() -> None:
    (log,) = (step for step in load_tier("T1").cycle if step.name == "git log")
    assert fixtures.TREE in log.expect_stdout
    assert load_tier("T2").setup[0].expect_stdout == fixtures.TREE
