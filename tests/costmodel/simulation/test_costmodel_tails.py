"""Order statistics beyond the sample: an interval that holds the truth, or "at least" with what more would take."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import pytest

from costmodel import Interval, Precision, TrainingRun, expected_max
from costmodel.projection.row import TailLimits
from costmodel.projection.wall_clock import WallClockLimits, limits, run_in_time, tail_limits
from costmodel.simulation.makespan import expected_makespan, list_makespan
from costmodel.statistics.distribution import Distribution
from taxtui.report.numbers import duration
from tests.studies.study_tails import LAWS, coverage, true_wall_s
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, trial, write

BY_NAME = {law.name: law for law in LAWS}
HOUR = 3600


def tail(law: Distribution, excess: int = 0, end_ns: float = 2 * S, **asked: float | None) -> TailLimits:
    """Limits of 512 jobs on 512 workers."""
    exact = Precision(tolerance=1e-12)
    training_run = TrainingRun(trajectories=512, workers=512, precision=exact, **asked)
    return tail_limits(law, 512, end_ns, training_run, excess=excess)


def law_of(name: str, trials: int, seed: int = 1) -> Distribution:
    rng = Random(seed)
    return Distribution.of(BY_NAME[name].draw(rng) * S for _ in range(trials))


@pytest.mark.parametrize(("trials", "two_sided"), [(100, False), (300, False), (4000, True)])
@pytest.mark.parametrize("name", ["0.1% x 30", "0.3% x 30", "1.0% x 30", "lognormal, sigma 1", "Pareto, index 2.5"])
def test_limits_hold_for_stragglers_that_few_trials_show(name: str, trials: int, two_sided: bool) -> None:
    """512 on 512: an upper limit takes 3.7 trials for each trajectory; with fewer the run takes "at least" so long."""
    law = BY_NAME[name]
    found = coverage(law, trials, 1, true_wall_s(law._replace(events=400_000), 1), 40)
    assert (found.two_sided, found.one_sided) == ((40, 0) if two_sided else (0, 40))
    assert found.held >= 0.9 * found.two_sided
    assert found.below >= 0.95 * found.one_sided


def test_how_many_trials_an_upper_limit_takes_and_cutting_the_last_ones_leaves_less_to_guess() -> None:
    needs = math.ceil(2 * 512 * -math.log(0.025))  # one job in 1,024 is among them with 97.5 %
    few, enough = law_of("gamma, CV 0.3", needs - 1), law_of("gamma, CV 0.3", needs)
    assert tail(few)[1:] == (None, needs)
    assert tail(enough).later_ns is not None
    assert tail(few, excess=30).later_ns is not None  # the fourth longest is less rare
    law = law_of("lognormal, sigma 1", 300)
    none, one, some, many = (tail(law, excess, 20 * S).later_ns for excess in (0, 1, 25, 100))
    assert (none, one) == (None, None)
    assert many < 0.5 * some


def test_a_timeout_bounds_what_no_trial_showed_and_a_retry_after_it_is_part_of_the_bound() -> None:
    for seed in range(20):
        law = law_of("98 % 1 s, 2 % 21 s", 30, seed)
        run = run_in_time(law, training_run := TrainingRun(trajectories=512, workers=512, timeout_s=29.0))
        ends, _ = limits(run, training_run, Interval(1.0, 0.95, 1.05))
        assert ends.low * HOUR <= 24.3 <= ends.high * HOUR
    law = law_of("gamma, CV 0.3", 100)
    once, thrice = (tail(law, timeout_s=9.0, max_attempts=cap).later_ns for cap in (1, 3))
    again = tail(law, timeout_s=9.0, backoff_s=1.0, max_attempts=3).later_ns
    seen = expected_max(law, 512)
    assert seen + once <= 9 * S
    assert 9 * S < seen + thrice < seen + again


def test_over_provisioned_steps_have_an_interval_and_a_stream_needs_none_for_its_steps() -> None:
    law = law_of("lognormal, sigma 1", 300)
    training_run = TrainingRun(trajectories=1024, workers=700, batch=512, over_provision=0.2)
    run = run_in_time(law, training_run)
    whole, step = limits(run, training_run, Interval(1.0, 0.99, 1.01))
    step_s = run.parts[0][2].value_ns / S / HOUR
    assert 0.8 * step_s < step.low < step_s < step.high < 1.25 * step_s
    assert whole.low == pytest.approx(2 * step.low, rel=1e-3)
    law = law_of("gamma, CV 0.3", 30)
    for policy, bounded in (("async", True), ("sync", False)):
        asked = TrainingRun(trajectories=1_000_000, workers=500, batch=500, policy=policy)
        whole, step = limits(run_in_time(law, asked), asked, Interval(1.0, 0.9, 1.1))
        assert (step == WallClockLimits(), whole.high is not None) == (bounded, bounded)


@pytest.mark.parametrize(
    ("shape", "share", "slow", "jobs", "workers"),
    [(1, 0.01, 30, 2560, 512), (1, 0.003, 100, 320, 64), (11, 0.01, 100, 320, 64)],
)
def test_rare_long_jobs_are_in_the_stated_error(shape: float, share: float, slow: int, jobs: int, workers: int) -> None:
    """A longest job beyond the end; and outcomes that no replicate had: one run in 25 holds no long job at all."""
    rng = Random(6)
    usual = (rng.gammavariate(shape, 1 / shape) * S for _ in range(1000))
    law = Distribution.of([*usual, *[slow * S] * round(1000 * share)])
    found, exact, total = expected_makespan(law, jobs, workers), Random(3), 0.0
    repeats = 400_000 // jobs
    for _ in range(repeats):
        drawn = exact.choices(law.values, cum_weights=law.cumulative, k=jobs)
        total += list_makespan(drawn, workers) - (sum(drawn) - jobs * law.mean) / workers
    assert abs(found.value_ns - total / repeats) <= found.error_ns + 0.01 * found.value_ns
    assert found.error_ns < 0.2 * found.value_ns


def test_at_least_is_what_is_printed_and_a_timeout_helps(tmp_path: Path) -> None:
    """40 trials of 6 to 8 s."""
    file = write(tmp_path / "run.msgpack", [trial(n, create=(2 + n % 3) * S, cleanup=S) for n in range(40)])

    def projected(*more: str) -> str:
        return " ".join(printed("project", file, "--trajectories=512", "--workers=512", *more).split())

    (row,) = json.loads(projected("--batch=512", "--format=json"))
    wall, steps, latency = row["wall_clock_hours"], row["steps"], row["trajectory_s"]
    assert (wall["high"], wall["needs_trials"]) == (None, 3778)
    assert (steps["step_high_s"], steps["step_needs_trials"]) == (None, 3778)
    assert wall["low"] == pytest.approx(steps["step_low_s"] / HOUR)
    p95 = [latency[f"p95{key}"] for key in ("", "_low", "_high", "_needs_trials")]
    assert p95 == [None, pytest.approx(7.11, abs=0.01), None, 72]  # 8 s at the least, less what repetitions may vary
    assert (latency["p99"], latency["p99_needs_trials"]) == (None, 368)
    table = projected("--full")
    assert f"≥ {duration(wall['low'] * 3600e9)}" in table
    assert "an upper limit takes 3,778 successes" in table
    told = projected("--explain")
    assert "an upper limit takes 3,778 successes, or a timeout" in told
    assert f", at least {wall['low']:,.9g}" in told
    (row,) = json.loads(projected("--set=timeout_s=20", "--format=json"))
    wall = row["wall_clock_hours"]
    assert wall["needs_trials"] is None
    assert wall["value"] < wall["high"] < 5 * 20 / HOUR
    assert "or the timeout" in projected("--set=timeout_s=20", "--explain")
