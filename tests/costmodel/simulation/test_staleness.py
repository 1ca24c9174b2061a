"""Mean staleness of fully asynchronous runs: the step model against the closed form in tests/support/staleness.py."""

from __future__ import annotations

from itertools import accumulate

import pytest

from tests.support.cost_model.stepping import parts, stepped, training_run
from tests.support.staleness import MEAN_S, STEPS, SYSTEMS, asynchronous, mean_period_s, mean_staleness


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize(("in_flight", "batch", "busy"), SYSTEMS[::2])
def test_mean_staleness_is_what_is_in_flight_over_the_batch_and_the_trainers_share(
    in_flight: int, batch: int, busy: float, spread: float
) -> None:
    """tests/studies/study_staleness.py has all systems."""
    period_s = MEAN_S * batch / in_flight
    steps = asynchronous(in_flight, batch, busy * period_s, spread)
    assert len(steps) == STEPS
    assert mean_period_s(steps) == pytest.approx(period_s, rel=0.03), "as fast as its rollouts"
    assert mean_staleness(steps, batch, busy * period_s) == pytest.approx(in_flight / batch + busy, abs=0.06)


def test_a_run_that_is_bound_by_its_trainer_has_its_period() -> None:
    assert mean_period_s(asynchronous(128, 128, 1.14 * MEAN_S, 0.4)) == pytest.approx(1.14 * MEAN_S)


def test_a_bound_on_staleness_bounds_what_runs_ahead() -> None:
    """With at most k steps ahead of the trainer, no more than k batches are launched and not yet trained."""
    train_s, batch, ahead = 2 * MEAN_S, 64, 3
    asked = training_run(batch=batch, workers=128, policy="async", train_s=train_s, staleness=ahead)
    steps = stepped(asked, [parts(unexplained=MEAN_S, weight=1)], steps=40)
    launched = list(accumulate(step.attempts for step in steps))
    assert all(count <= (number + 1 + ahead) * batch for number, count in enumerate(launched))
