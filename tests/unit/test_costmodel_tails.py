"""Order statistics beyond the sample: an interval that holds the truth, or "at least" with what more would take."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from costmodel import Demand, Interval, expected_makespan, list_makespan
from costmodel.projection.tail_limits import LEAST_TRIALS, Timeout, reach
from costmodel.projection.wall_clock import Ends, limits, run_in_time
from costmodel.simulation.renewal import expected_max, renewal_makespan
from costmodel.statistics.distribution import Distribution
from costmodel.statistics.end_effect import Survival, overhang
from costmodel.statistics.pareto import heaviest
from taxtui.commands.project import command
from taxtui.report.numbers import duration
from tests.benchmarks.bench_costmodel_tails import LAWS, coverage, true_wall_s
from tests.support.costmodel_files import S, trial, write

BY_NAME = {law.name: law for law in LAWS}
HOUR = 3600


def law_of(name: str, trials: int, seed: int = 1) -> Distribution:
    rng = Random(seed)
    return Distribution.of(BY_NAME[name].draw(rng) * S for _ in range(trials))


def simulated(law: Distribution, jobs: int, workers: int, repeats: int) -> float:
    rng, total = Random(3), 0.0
    for _ in range(repeats):
        drawn = rng.choices(law.values, cum_weights=law.cumulative, k=jobs)
        total += list_makespan(drawn, workers) - (sum(drawn) - jobs * law.mean) / workers
    return total / repeats


@pytest.mark.parametrize(
    ("name", "waves", "truth_s"),
    [
        ("gamma, CV 0.3", 1, 2.17),
        ("lognormal, sigma 1", 1, 22.6),
        ("Pareto, index 2.5", 1, 18.1),
        ("Pareto, index 2.5", 20, 80.3),
        ("lognormal, sigma 0.5", 1, 4.66),
    ],
)
def test_300_trials_bound_the_wall_clock_on_both_sides(name: str, waves: int, truth_s: float) -> None:
    found = coverage(BY_NAME[name], 300, waves, truth_s, 40)
    assert found.two_sided >= 20
    assert found.held >= 0.9 * found.two_sided
    assert found.below >= 0.9 * found.one_sided
    assert found.as_before <= 20  # what the mean's relative interval alone holds


@pytest.mark.parametrize("name", BY_NAME)
def test_30_trials_bound_it_from_below_alone(name: str) -> None:
    law = BY_NAME[name]
    found = coverage(law, 30, 1, true_wall_s(law._replace(events=200_000), 1), 40)
    assert (found.two_sided, found.one_sided) == (0, 40)
    assert found.below >= 38


def test_where_the_tail_is_nothing_the_interval_is_the_means() -> None:
    law = law_of("gamma, CV 0.3", 30)
    demand = Demand(trajectories=1_000_000, workers=500)
    run = run_in_time(law, demand)
    low, high, tail = limits(run, demand, Interval(10.0, 9.0, 12.0)).run
    assert low is not None
    assert high is not None
    value, error = run.wall.value_ns / S / HOUR, run.wall.error_ns / S / HOUR
    assert (low, high) == pytest.approx((0.9 * (value - error), 1.2 * (value + error)))
    assert tail == (0.0, 0.0, None)


def test_how_many_trials_an_upper_limit_takes() -> None:
    few, enough = law_of("gamma, CV 0.3", LEAST_TRIALS - 1), law_of("gamma, CV 0.3", LEAST_TRIALS)
    assert reach(few, 512, 512, 2 * S)[1:] == (None, 149)
    assert reach(enough, 512, 512, 2 * S).later_ns is not None
    heavy = law_of("98 % 1 s, 2 % 21 s", 300)
    deep = reach(heavy, 102_400, 512, 290 * S)
    assert deep[1:] == (None, math.ceil(102_400 * -math.log(0.025)))  # an order of magnitude is no limit


def test_a_timeout_bounds_what_no_trial_showed() -> None:
    for seed in range(20):
        law = law_of("98 % 1 s, 2 % 21 s", 30, seed)
        run = run_in_time(law, demand := Demand(trajectories=512, workers=512, timeout_s=29.0))
        ends = limits(run, demand, Interval(1.0, 0.95, 1.05)).run
        assert ends.low is not None
        assert ends.high is not None
        assert ends.low * HOUR <= 24.3 <= ends.high * HOUR


def test_a_retry_after_the_timeout_is_part_of_the_bound() -> None:
    law = law_of("gamma, CV 0.3", 100)
    once, thrice = (reach(law, 512, 512, 2 * S, timeout=Timeout(9 * S, 0, cap)).later_ns for cap in (1, 3))
    again = reach(law, 512, 512, 2 * S, timeout=Timeout(9 * S, S, 3)).later_ns
    assert once is not None
    assert thrice is not None
    assert again is not None
    seen = overhang(Survival(law.values, law.counts), 512, 512) + law.mean
    assert seen + once <= 9 * S
    assert 9 * S < seen + thrice < seen + again


def test_cutting_the_last_ones_leaves_less_to_guess() -> None:
    law = law_of("lognormal, sigma 1", 300)
    later = [reach(law, 512, 512, 20 * S, excess=excess).later_ns for excess in (0, 5, 25, 100)]
    assert later == sorted(later, key=lambda ns: -(ns or 0.0))
    assert (later[-1] or 0.0) < 0.02 * (later[0] or 0.0)


def test_over_provisioned_steps_have_an_interval_of_their_own() -> None:
    law = law_of("lognormal, sigma 1", 300)
    demand = Demand(trajectories=1024, workers=700, batch=512, over_provision=0.2)
    run = run_in_time(law, demand)
    both = limits(run, demand, Interval(1.0, 0.99, 1.01))
    step_s = run.parts[0][1].value_ns / S / HOUR
    assert both.step.low is not None
    assert both.step.high is not None
    assert 0.8 * step_s < both.step.low < step_s < both.step.high < 1.2 * step_s
    assert both.run.low == pytest.approx(2 * both.step.low)


def test_rollouts_that_nothing_waits_for_are_one_stream() -> None:
    law = law_of("gamma, CV 0.3", 30)
    demand = Demand(trajectories=1_000_000, workers=500, batch=500, policy="async")
    both = limits(run_in_time(law, demand), demand, Interval(1.0, 0.9, 1.1))
    assert both.step == Ends()
    assert both.run.high is not None
    sync = Demand(trajectories=1_000_000, workers=500, batch=500)
    assert limits(run_in_time(law, sync), sync, Interval(1.0, 0.9, 1.1)).run.high is None


@pytest.mark.parametrize(("jobs", "workers"), [(40, 64), (64, 64), (128, 64), (640, 64), (6_400, 64)])
def test_the_overhang_is_that_of_a_simulation(jobs: int, workers: int) -> None:
    """Within 4 %, though the longest job takes as long as fifteen waves."""
    law = Distribution.of([*(x * S // 100 for x in range(20, 180)), 20 * S, 20 * S])
    found = overhang(Survival(law.values, law.counts), jobs, workers) + jobs * law.mean / workers
    assert found == pytest.approx(simulated(law, jobs, workers, max(60, 100_000 // jobs)), rel=0.04)


def test_the_overhang_has_the_known_forms_as_its_ends() -> None:
    law = law_of("gamma, CV 0.3", 100)
    survival = Survival(law.values, law.counts)
    assert (survival.mean, survival.second_moment) == pytest.approx((law.mean, law.second_moment))
    assert overhang(survival, 50, 50) + law.mean == pytest.approx(expected_max(law, 50))
    assert overhang(survival, 50_000, 500) + 100 * law.mean == pytest.approx(
        renewal_makespan(law, 50_000, 500), rel=1e-3
    )


def test_the_heaviest_tail_is_heavier_the_less_is_known() -> None:
    rng = Random(2)
    for index in (2.5, 10.0):  # ξ = 0.4 and 0.1
        shapes = []
        for count in (30, 3000):
            excesses = sorted((rng.paretovariate(index) - 1) * S for _ in range(count))
            shapes.append(heaviest(excesses, 100.0, 0.985).shape)
        assert shapes[0] > shapes[1] >= 1 / index - 0.03
        assert shapes[1] - 1 / index < 0.15


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
    assert (wall["high"], wall["needs_trials"]) == (None, 149)
    assert (steps["step_high_s"], steps["step_needs_trials"]) == (None, 149)
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
    assert "an upper limit takes 149 successes" in " ".join(table.split())
    told = " ".join(projected(file, "--explain").split())
    assert "that takes 149 successes, or a timeout" in told
    assert f", at least {wall['low']:,.9g}" in told


def test_a_timeout_is_offered_and_helps(file: str) -> None:
    (row,) = json.loads(projected(file, "--set=timeout_s=20", "--format=json"))
    wall = row["wall_clock_hours"]
    assert wall["needs_trials"] is None
    assert wall["value"] < wall["high"] < 5 * 20 / HOUR
    assert "or the timeout" in " ".join(projected(file, "--set=timeout_s=20", "--explain").split())
