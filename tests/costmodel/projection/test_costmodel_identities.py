"""The closed forms: what holds for every sample, price, length, pool and interval."""

from __future__ import annotations

from array import array
from fractions import Fraction
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from costmodel import POLICIES, Interval, RecordedTrial, TrainingRun, mean_interval
from costmodel.projection.wall_clock import limits, run_in_time
from costmodel.recording.breakdown import Measures, Split
from costmodel.simulation.attempts import Retries, with_retries
from costmodel.statistics.distribution import Distribution
from costmodel.workload.estimator import Tally
from costmodel.workload.pool import at_length

many = settings(max_examples=200, deadline=None)


def a_trial(actions: list[int], startup: int, *, ok: bool = True, run_id: str = "r") -> RecordedTrial:
    trial = RecordedTrial(run_id, 0)
    trial.ok = ok
    trial.durations_ns = array("q", actions)
    trial.runs_ns = array("q", actions)
    trial.sandbox_ns = startup + sum(actions)
    trial.actions = Split.of(actions, actions)
    trial.measures = Measures(create_ns=startup, work_ns=sum(actions), held_ns=trial.sandbox_ns)
    return trial


@many
@given(st.lists(st.tuples(st.integers(0, 10**12), st.booleans()), min_size=1, max_size=50))
def test_the_retry_identity_is_exact(outcomes: list[tuple[int, bool]]) -> None:
    """Σ held / successes is E[held of a success] + E[held of a failure] · f / (1 − f)."""
    trials = [a_trial([], held, ok=ok) for held, ok in outcomes]
    sums = Tally([at_length(trial, index, 0, 1) for index, trial in enumerate(trials)], trials)
    good, bad = [held for held, ok in outcomes if ok], [held for held, ok in outcomes if not ok]
    assume(good)
    failure = Fraction(len(bad), len(outcomes))
    assert sums.failure == failure
    identity = Fraction(sum(good), len(good)) + (Fraction(sum(bad), len(bad)) if bad else 0) * failure / (1 - failure)
    assert sums.total(lambda attempt: attempt.held_ns) / sums.successes == identity
    assert Retries(failure, None).attempts * Fraction(sum(held for held, _ in outcomes), len(outcomes)) == identity


@many
@given(
    st.lists(st.integers(0, 10**10), min_size=1, max_size=40),
    st.integers(0, 10**10),
    st.integers(1, 12),
    st.integers(0, 60),
)
def test_length(actions: list[int], startup: int, cycle: int, extra: int) -> None:
    trial = a_trial(actions, startup)
    count, period = len(actions), min(cycle, len(actions))

    def held(length: int) -> int:
        return at_length(trial, 0, length, cycle).held_ns

    assert held(count) == trial.measures.held_ns
    assert held(0) == startup
    assert held(count + extra + 1) >= held(count + extra) >= held(min(extra, count))
    later = max(1, count // period // 2)  # cycles that are averaged: after as many the sum is whole again
    assert held(count + later * period) - held(count) == sum(actions[-later * period :])


@many
@given(st.lists(st.integers(0, 10**6), min_size=3, max_size=60), st.randoms(use_true_random=False))
def test_clustering_never_narrows(sample: list[int], rng: Random) -> None:
    plain, clustered = mean_interval(sample), mean_interval(sample, [rng.randrange(5) for _ in sample])
    assert clustered.low <= plain.low
    assert clustered.high >= plain.high


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(10**8, 10**11), min_size=1, max_size=20),
    st.lists(st.integers(10**8, 10**11), min_size=1, max_size=20),
    st.integers(1, 19),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_chains_of_retries_have_the_exact_mean(good: list[int], bad: list[int], percent: int, cap: int | None) -> None:
    retries = Retries(Fraction(percent, 20), cap)
    success, failure = Distribution.of(good), Distribution.of(bad)
    law = with_retries(success, failure, retries, 10**9, Random(0))
    exact = (
        float(retries.delivered) * success.mean
        + float(retries.attempts - retries.delivered) * failure.mean
        + float(retries.attempts - 1) * 1e9
    )
    assert abs(law.mean - exact) <= 1e-6 * exact + 1


laws = st.lists(st.integers(1, 10**11), min_size=1, max_size=20).map(Distribution.of)


@settings(max_examples=60, deadline=None)
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
    assert (high is None) == (tail.needs_trials is not None)
    assert policy == "async" or steps * train_s / 3600 <= low * (1 + 1e-9) + 1e-12
    assert policy == "async" or low <= run.wall.value_ns / 3.6e12 * (1 + 1e-9)
    if policy == "sync":  # the limits of the others do not know how rollouts and training overlap
        assert high is None or run.wall.value_ns / 3.6e12 <= high * (1 + 1e-9)
