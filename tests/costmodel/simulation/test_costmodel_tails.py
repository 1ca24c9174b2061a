"""Order statistics beyond the sample: an interval that holds the truth, or "at least" with what more would take."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from costmodel import Interval, Precision, TrainingRun
from costmodel.projection.row import TailLimits
from costmodel.projection.wall_clock import WallClockLimits, limits, run_in_time, tail_limits
from costmodel.simulation.makespan import expected_makespan, expected_max, list_makespan
from costmodel.statistics.distribution import Distribution
from taxtui.commands.project import command
from taxtui.report.numbers import duration
from tests.studies.study_tails import LAWS, coverage, true_wall_s
from tests.support.cost_model.costmodel_files import S, trial, write

BY_NAME = {law.name: law for law in LAWS}
HOUR = 3600


def tail(law: Distribution, excess: int = 0, end_ns: float = 2 * S, **asked: float | None) -> TailLimits:
    """Limits of 512 jobs on 512 workers."""
    exact = Precision(tolerance=1e-12)
    training_run = TrainingRun(trajectories=512, workers=512, precision=exact, **asked)  # type: ignore[arg-type]
    return tail_limits(law, 512, end_ns, training_run, excess=excess)


def law_of(name: str, trials: int, seed: int = 1) -> Distribution:
    rng = Random(seed)
    return Distribution.of(BY_NAME[name].draw(rng) * S for _ in range(trials))


def simulated(law: Distribution, jobs: int, workers: int, repeats: int) -> float:
    rng, total = Random(3), 0.0
    for _ in range(repeats):
        drawn = rng.choices(law.values, cum_weights=law.cumulative, k=jobs)
        total += list_makespan(drawn, workers) - (sum(drawn) - jobs * law.mean) / workers
    return total / repeats


@pytest.mark.parametrize(("trials", "two_sided"), [(100, False), (300, False), (4000, True)])
@pytest.mark.parametrize("name", ["0.1% x 30", "0.3% x 30", "1.0% x 30", "lognormal, sigma 1", "Pareto, index 2.5"])
def test_limits_hold_for_stragglers_that_few_trials_show(name: str, trials: int, two_sided: bool) -> None:
    """512 on 512: an upper limit takes 3.7 trials for each trajectory; with fewer the run takes "at least" so long."""
    law = BY_NAME[name]
    found = coverage(law, trials, 1, true_wall_s(law._replace(events=400_000), 1), 40)
    assert (found.two_sided, found.one_sided) == ((40, 0) if two_sided else (0, 40))
    assert found.held >= 0.9 * found.two_sided
    assert found.below >= 0.95 * found.one_sided


def test_where_the_tail_is_nothing_the_interval_is_the_means() -> None:
    law = law_of("gamma, CV 0.3", 30)
    training_run = TrainingRun(trajectories=1_000_000, workers=500)
    run = run_in_time(law, training_run)
    low, high, tail = limits(run, training_run, Interval(10.0, 9.0, 12.0))[0]
    assert low is not None
    value, error = run.wall.value_ns / S / HOUR, run.wall.error_ns / S / HOUR
    assert (low, high) == pytest.approx((0.9 * (value - error), 1.2 * (value + error)))
    assert tail == (0.0, 0.0, None)


def test_how_many_trials_an_upper_limit_takes() -> None:
    needs = math.ceil(2 * 512 * -math.log(0.025))  # one job in 1,024 is among them with 97.5 %
    few, enough = law_of("gamma, CV 0.3", needs - 1), law_of("gamma, CV 0.3", needs)
    assert tail(few)[1:] == (None, needs)
    assert tail(enough).later_ns is not None
    assert tail(few, excess=30).later_ns is not None  # the fourth longest is less rare


def test_a_timeout_bounds_what_no_trial_showed() -> None:
    for seed in range(20):
        law = law_of("98 % 1 s, 2 % 21 s", 30, seed)
        run = run_in_time(law, training_run := TrainingRun(trajectories=512, workers=512, timeout_s=29.0))
        ends, _ = limits(run, training_run, Interval(1.0, 0.95, 1.05))
        assert ends.low * HOUR <= 24.3 <= ends.high * HOUR


def test_a_retry_after_the_timeout_is_part_of_the_bound() -> None:
    law = law_of("gamma, CV 0.3", 100)
    once, thrice = (tail(law, timeout_s=9.0, max_attempts=cap).later_ns for cap in (1, 3))
    again = tail(law, timeout_s=9.0, backoff_s=1.0, max_attempts=3).later_ns
    seen = expected_max(law, 512)
    assert seen + once <= 9 * S
    assert 9 * S < seen + thrice < seen + again


def test_cutting_the_last_ones_leaves_less_to_guess() -> None:
    law = law_of("lognormal, sigma 1", 300)
    later = [tail(law, excess, 20 * S).later_ns for excess in (0, 1, 25, 100)]
    assert later[:2] == [None, None]
    assert None not in later[2:]
    assert (later[3] or 0.0) < 0.5 * (later[2] or 0.0)


def test_over_provisioned_steps_have_an_interval_of_their_own() -> None:
    law = law_of("lognormal, sigma 1", 300)
    training_run = TrainingRun(trajectories=1024, workers=700, batch=512, over_provision=0.2)
    run = run_in_time(law, training_run)
    whole, step = limits(run, training_run, Interval(1.0, 0.99, 1.01))
    step_s = run.parts[0][2].value_ns / S / HOUR
    assert 0.8 * step_s < step.low < step_s < step.high < 1.25 * step_s
    assert whole.low == pytest.approx(2 * step.low, rel=1e-3)


def test_rollouts_that_nothing_waits_for_are_one_stream() -> None:
    law = law_of("gamma, CV 0.3", 30)
    training_run = TrainingRun(trajectories=1_000_000, workers=500, batch=500, policy="async")
    whole, step = limits(run_in_time(law, training_run), training_run, Interval(1.0, 0.9, 1.1))
    assert step == WallClockLimits()
    assert whole.high is not None
    sync = TrainingRun(trajectories=1_000_000, workers=500, batch=500)
    assert limits(run_in_time(law, sync), sync, Interval(1.0, 0.9, 1.1))[0].high is None


@pytest.mark.parametrize(
    ("share", "slow", "jobs", "workers"), [(0.01, 30, 2560, 512), (0.01, 30, 80, 8), (0.003, 100, 320, 64)]
)
def test_a_longest_job_beyond_the_end_is_in_the_stated_error(share: float, slow: int, jobs: int, workers: int) -> None:
    rng = Random(6)
    law = Distribution.of([*(rng.expovariate(1) * S for _ in range(1000)), *[slow * S] * round(1000 * share)])
    found = expected_makespan(law, jobs, workers)
    off = abs(found.value_ns - simulated(law, jobs, workers, 400_000 // jobs))
    assert off <= found.error_ns + 0.01 * found.value_ns


def test_outcomes_that_no_replicate_had_are_in_the_stated_error() -> None:
    """All 30 replicates hold one of the long jobs; one run in 25 holds none and ends after a tenth of the time."""
    rng = Random(6)
    law = Distribution.of([*(rng.gammavariate(11, 0.09) * S for _ in range(1000)), *[100 * S] * 10])
    found = expected_makespan(law, 320, 64)
    off = abs(found.value_ns - simulated(law, 320, 64, 2000))
    assert off <= found.error_ns + 0.01 * found.value_ns
    assert found.error_ns < 0.2 * found.value_ns


@pytest.fixture
def file(tmp_path: Path) -> str:
    """40 trials of 6 to 8 s."""
    return str(write(tmp_path / "run.msgpack", [trial(n, create=(2 + n % 3) * S, cleanup=S) for n in range(40)]))


def projected(file: str, *more: str) -> str:
    result = CliRunner().invoke(command, [file, "--trajectories=512", "--workers=512", *more])
    assert result.exit_code == 0, result.output
    return result.output


def test_at_least_is_what_is_printed(file: str) -> None:
    (row,) = json.loads(projected(file, "--batch=512", "--format=json"))
    wall, steps, latency = row["wall_clock_hours"], row["steps"], row["trajectory_s"]
    assert (wall["high"], wall["needs_trials"]) == (None, 3778)
    assert (steps["step_high_s"], steps["step_needs_trials"]) == (None, 3778)
    assert wall["low"] == pytest.approx(steps["step_low_s"] / HOUR)
    assert (latency["p95"], latency["p95_low"], latency["p95_high"], latency["p95_needs_trials"]) == (
        None,
        8.0,
        None,
        72,
    )
    assert (latency["p99"], latency["p99_needs_trials"]) == (None, 368)
    table = projected(file, "--full")
    assert f"≥ {duration(wall['low'] * 3600e9)}" in table
    assert "an upper limit takes 3,778 successes" in " ".join(table.split())
    told = " ".join(projected(file, "--explain").split())
    assert "an upper limit takes 3,778 successes, or a timeout" in told
    assert f", at least {wall['low']:,.9g}" in told


def test_a_timeout_is_offered_and_helps(file: str) -> None:
    (row,) = json.loads(projected(file, "--set=timeout_s=20", "--format=json"))
    wall = row["wall_clock_hours"]
    assert wall["needs_trials"] is None
    assert wall["value"] < wall["high"] < 5 * 20 / HOUR
    assert "or the timeout" in " ".join(projected(file, "--set=timeout_s=20", "--explain").split())
