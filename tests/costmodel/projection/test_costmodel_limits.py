"""Training steps: no interval ends below the training, and every over-provisioned launch is accounted for."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.projection.wall_clock import limits, run_in_time
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.intervals import Interval
from costmodel.training.policies import POLICIES
from costmodel.training.run import TrainingRun

many = settings(max_examples=60, deadline=None)
laws = st.lists(st.integers(1, 10**11), min_size=1, max_size=20).map(Distribution.of)


@many
@given(
    laws,
    st.sampled_from([3, 30, 300, 3000]),
    st.sampled_from(list(POLICIES)),
    st.integers(1, 40),
    st.integers(1, 9),
    st.floats(0, 1e4),
    st.floats(0.01, 1),
)
def test_no_limit_is_below_the_training_alone(
    law: Distribution, trials: int, policy: str, batch: int, steps: int, train_s: float, doubt: float
) -> None:
    law.trials = trials
    training_run = TrainingRun(trajectories=batch * steps, workers=7, batch=batch, policy=policy, train_s=train_s)
    run = run_in_time(law, training_run)
    low, high, tail = limits(run, training_run, Interval(1.0, 1 - doubt, 1 + doubt))[0]
    assert low is not None
    assert (high is None) == (tail.needs_trials is not None)
    assert steps * train_s / 3600 <= low * (1 + 1e-9)
    assert policy == "async" or low <= run.wall.value_ns / 3.6e12 * (1 + 1e-9)
    if policy == "sync":  # the limits of the others do not know how rollouts and training overlap
        assert high is None or run.wall.value_ns / 3.6e12 <= high * (1 + 1e-9)
