"""``project`` attributes a run in steps to causes: what is saved without each, how sure that is, in which units."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

from costmodel import (
    Attribution,
    Images,
    Interval,
    Row,
    Think,
    TrainingRun,
    TrainingRunError,
    load,
    load_prices,
    project,
)
from costmodel.attribution import replications
from costmodel.attribution.resamples import interval_of
from costmodel.projection.row import CAUSES, Share
from costmodel.simulation.random_streams import RandomStream
from costmodel.simulation.rules import StepRules
from costmodel.simulation.step_sampling import sample_steps
from costmodel.workload.pool import pools
from tests.support.cost_model.attributed_worlds import AMOUNTS, holds, recorded, two_sided
from tests.support.cost_model.attributed_worlds import attributed as attributed_run
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.cost_model.stepping import parts, trials_of

HOUR = 3600
STEPS = {"trajectories": 1600, "workers": 16, "prompts": 4, "group_size": 4}
GPUS = {"gpus": 8, "gpu_usd_hour": 3.0, "train_s": 60.0}


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replications, "ATTEMPTS", 20_000)
    monkeypatch.setattr(replications, "BUDGET", 20_000)


def row(file: Path, prices: Path | None = None, **asked: Any) -> Row:
    (found,) = project([load(file)], TrainingRun(**STEPS | asked), prices and load_prices(prices))
    return found


def attributed(file: Path, prices: Path | None = None, **asked: Any) -> Attribution:
    found = row(file, prices, **asked).attribution
    return found


@pytest.fixture
def same(tmp_path: Path) -> Path:
    """Trials of 9 s: create 2, ready 1, three commands of 1.25 s that ran for 1 s, gaps of 0.75 s; clean-up 4."""
    each = {"runs": [S] * 3, "actions": [S * 5 // 4] * 3, "gaps": [S * 3 // 4] * 3, "cleanup": 4 * S}
    return write(tmp_path / "same.msgpack", [trial(n, **each) for n in range(12)])  # type: ignore[arg-type]


@pytest.fixture
def varied(tmp_path: Path) -> Path:
    rng = Random(1)

    def lasting() -> int:
        return round(rng.lognormvariate(0, 0.5) * S)

    trials = [
        trial(n, create=lasting(), actions=(took := [lasting() for _ in range(5)]), runs=[t * 3 // 4 for t in took])
        for n in range(30)
    ]
    failed = [trial(n, create=lasting(), actions=(lasting(),), outcome="failed") for n in range(30, 34)]
    return write(tmp_path / "varied.msgpack", [*trials, *failed], cell(actions=5))


def test_equal_trials_by_hand(same: Path) -> None:
    found = attributed(same, run_sd=0.0, **GPUS)
    seconds = {cause: share and share.step_s.value for cause, share in found.causes.items()}
    assert list(seconds) == list(CAUSES)
    assert seconds == pytest.approx(
        dict.fromkeys(CAUSES, 0.0)
        | {"create": 2, "ready": 1, "dispatch": 0.75, "harness": 2.25, "slowdown": None, "contention": None}
    )
    assert found.run.step_s == pytest.approx((69, 69, 69))
    assert found.sandbox.step_s.value == pytest.approx(6)
    assert found.sandbox.worker_hours.value * HOUR == pytest.approx(1600 * 6)
    assert found.sandbox.gpu_hours.value * HOUR == pytest.approx(100 * 8 * 6)
    assert found.sandbox.usd.value == pytest.approx(3 * found.sandbox.gpu_hours.value)
    assert found.run.usd.value == pytest.approx(3 * 8 * 100 * 69 / HOUR)
    assert found.usd_per_critical_second == pytest.approx(3 * 8 * 100 / HOUR)
    assert found.waiting.stalled_gpu_hours == pytest.approx(found.sandbox.gpu_hours.value)
    assert found.waiting.commands_gpu_hours == pytest.approx(100 * 8 * 3 / HOUR)
    assert found.waiting.generation_gpu_hours is None
    assert (found.steps, found.error_s) == (100, pytest.approx(0, abs=1e-9))


def test_a_sandbox_that_costs_nothing_is_attributed_nothing(tmp_path: Path) -> None:
    file = write(
        tmp_path / "free", [trial(n, create=0, ready=0, actions=(n * S, S)) for n in range(8)], cell(actions=2)
    )
    found = attributed(file, think=Think(S, 1.0), **GPUS)
    for share in (*found.causes.values(), found.sandbox, found.interaction):
        for amount in share or ():
            assert amount == (0, 0, 0)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"think": Think(S, 1.0), "think_correlation": 0.5, "failure_hazard": 20.0},
        {"nodes": 4, "pods_per_node": 4, "images": Images.between(1, 3, 40), "pull_gb_s": 0.5, "failure_rate": 0.1},
        {"create_rate": 2.0, "over_provision": 0.25, "prompts": None, "group_size": None, "batch": 16},
        {"policy": "async", "staleness": 2, "quota": 10},
    ],
    ids=["plain", "hazard", "images", "over", "async"],
)
def test_causes_and_their_interaction_are_what_an_ideal_sandbox_saves(varied: Path, more: dict[str, Any]) -> None:
    found = attributed(varied, **GPUS, **more)

    def value(share: Share | None) -> list[float]:
        return [amount.value for amount in share or () if amount]

    columns = [value(share) for share in (*found.causes.values(), found.interaction) if share]
    assert [math.fsum(column) for column in zip(*columns, strict=True)] == pytest.approx(value(found.sandbox))
    for share in (*filter(None, found.causes.values()), found.sandbox, found.run):
        for amount in filter(None, share):
            low, high = (-math.inf, math.inf) if amount.low is None else (amount.low, amount.high or math.inf)
            assert low <= amount.value <= high
        assert share.worker_hours.high is not None
    assert found.sandbox.step_s.value > 0
    waiting = found.waiting
    parts = waiting.generation_gpu_hours or 0, waiting.commands_gpu_hours or 0, waiting.stalled_gpu_hours or 0
    assert sum(parts) == pytest.approx(waiting.waiting_gpu_hours)


def test_an_old_question_keeps_its_answer_and_the_attribution_agrees_with_it(varied: Path) -> None:
    plain, without = row(varied), project([load(varied)], TrainingRun(**STEPS), effort=0.0)[0]
    assert without.attribution is None
    assert (plain.worker_hours, plain.wall_clock_hours) == (without.worker_hours, without.wall_clock_hours)
    run = plain.attribution.run
    assert run.worker_hours.value == pytest.approx(plain.worker_hours.value, rel=0.05)
    assert run.step_s.value * 100 / HOUR == pytest.approx(plain.wall_clock_hours.value, rel=0.08)


@pytest.mark.parametrize(
    "option",
    [
        {"failure_rate": 0.0},
        {"failure_rate": 0.2, "group_size": None, "prompts": None, "batch": 16},
        {"think_correlation": 0.5, "think": Think(S, 1.0)},
        {"nodes": 4, "pods_per_node": 4, "images": Images.between(1, 3, 40), "pull_gb_s": 0.5},
    ],
    ids=["no failures", "failures", "think", "images"],
)
def test_a_step_option_keeps_the_rows_own_doubt_about_the_slowest(varied: Path, option: dict[str, Any]) -> None:
    """30 trials do not bound the slowest of 16: no draw from them is slower than the slowest of them."""
    shared = {name: value for name, value in option.items() if name == "think"}
    plain, asked = row(varied, **GPUS, **shared), row(varied, **GPUS, **option)
    assert (plain.wall_clock_hours.high, plain.wall_clock_hours.needs_trials) == (None, 119)
    assert (asked.wall_clock_hours.high, asked.wall_clock_hours.needs_trials) == (None, 119)
    for found in (plain.attribution, asked.attribution):
        for share in (found.run, found.sandbox, found.causes["dispatch"], found.interaction):
            for amount in (share.step_s, share.gpu_hours, share.usd):
                assert (amount.low is not None) == (share is found.run)
                assert amount.high is None
            assert share.worker_hours.high is not None  # a mean, which 30 trials do bound
        assert found.causes["preload"] == (Interval(0.0, 0.0, 0.0),) * 4


def test_a_timeout_bounds_the_run_and_no_cause(varied: Path) -> None:
    """How long a killed attempt lasts is known, and how many are, is not: the run's limit has to hold both."""
    plain, asked = (row(varied, **GPUS, timeout_s=60.0, **more) for more in ({}, {"failure_rate": 0.0}))
    for one in (plain, asked):
        assert one.wall_clock_hours.high > 1.3 * one.wall_clock_hours.value
        assert one.attribution.run.step_s.high == pytest.approx(one.wall_clock_hours.high * HOUR / 100, rel=0.05)
        assert one.attribution.sandbox.step_s.high is None


def test_what_only_steps_can_say_answers_the_whole_row(varied: Path) -> None:
    less, more = (row(varied, failure_rate=rate, **GPUS) for rate in (0.0, 0.5))
    assert more.attempts == pytest.approx(2, rel=0.1)
    assert less.attempts == 1
    assert more.worker_hours.value == pytest.approx(1.5 * less.worker_hours.value, rel=0.1)
    assert more.tax_worker_hours == more.attribution.sandbox.worker_hours
    assert more.gpu == {"sync": more.attribution.waiting}
    assert more.wall_clock_hours.value * HOUR == pytest.approx(100 * more.attribution.run.step_s.value)
    (quick,) = project([load(varied)], TrainingRun(**STEPS, failure_rate=0.5), effort=0.0)
    assert quick.attribution is None
    assert quick.attempts == pytest.approx(2, rel=0.2)
    masked = row(varied, failure_rate=0.5, on_failure="mask")
    assert masked.delivered == pytest.approx(0.5, rel=0.1)


def test_nodes_are_paid_for_as_long_as_the_run_lasts(same: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(
        'date = 2026-01-01\n[[sandbox]]\nsubstrate = "docker"\nusd_per_hour = 3600\nminimum_s = 0\nincrement_s = 1\n'
        'source = "x"\n[worker]\nusd_per_hour = 7200\n'
    )
    nodes = {"nodes": 2, "pods_per_node": 16, "node_usd_hour": 36.0}
    found = attributed(same, sheet, run_sd=0.0, **nodes)
    lasts_s = 9 + 99 * 9
    assert found.run.usd.value == pytest.approx(2 * 36 * lasts_s / HOUR + 1600 * 2 * 9 + 1600 * 13, rel=1e-6)
    assert found.usd_per_critical_second == pytest.approx(100 * 72 / HOUR)
    cleanup = found.causes["cleanup"]
    assert cleanup.usd.value == pytest.approx(1600 * 4)
    asked = row(same, sheet, run_sd=0.0, **nodes)
    assert asked.cost.sandbox_usd.value == pytest.approx(1600 * 13)


def test_slowdown_is_told_where_there_is_a_reference(tmp_path: Path) -> None:
    fast = [trial(n, cell=0, actions=[S] * 3) for n in range(4)]
    slow = [trial(n, cell=1, actions=[3 * S] * 3) for n in range(4, 8)]
    file = write(tmp_path / "two", [*fast, *slow], cell(0), cell(1, substrate="ec2"))
    rows = project([load(file)], TrainingRun(**STEPS, run_sd=0.0, full_speed="docker"))
    told = [one.attribution and one.attribution.causes["slowdown"] for one in rows]
    assert [share and share.step_s.value for share in told] == pytest.approx([0, 6])


def test_trials_that_differ_leave_more_open_than_equal_ones(same: Path, varied: Path) -> None:
    widths = []
    for file, sd in ((same, 0.0), (same, 0.1), (varied, 0.0)):
        hours = attributed(file, run_sd=sd).sandbox.worker_hours
        widths.append((hours.high - hours.low) / hours.value)
    assert widths[0] < 1e-9
    assert 0.1 < widths[1] < 1
    assert 0.03 < widths[2] < 1


def test_intervals_hold_the_truth_even_if_steps_differ_as_much_as_trials_leave_open() -> None:
    rng, inside = Random(5), 0

    def draws(count: int, sd: float) -> list[float]:
        return [rng.gauss(0, sd) for _ in range(count)]

    for _ in range(400):
        plain = [draws(3, 0.4) for _ in range(9)]
        twins = [[ns + left_open for ns in draws(3, 0.4)] for left_open in draws(9, 1 / 3)]
        found, (off,) = interval_of(plain, twins, [1.0] * 3, signed=True), draws(1, 1.0)
        inside += found.low <= off <= found.high
    assert inside / 400 > 0.9


def test_steps_stand_for_all_of_a_run(varied: Path) -> None:
    (pool,) = pools([load(varied)])  # type: ignore[list-item]
    assert pool.trials
    images = {"nodes": 4, "pods_per_node": 4, "images": Images.between(1, 3, 300), "pull_gb_s": 0.5}
    for count in (1, 7, 160, 161, 5000, 160_000):
        for more in ({}, {"create_rate": 1.0}, images, {"policy": "async"}):
            asked = TrainingRun(**STEPS | {"trajectories": max(16, count)} | more)  # type: ignore[arg-type]
            world = RandomStream(asked, trials_of([parts(work=1)]), None, 0)
            plan = sample_steps(asked, StepRules(asked), world, 6)
            assert sum(plan.stands_for) == pytest.approx(plan.steps) == math.ceil(max(16, count) / 16)
            assert plan.simulated <= (26 if "policy" in more else 12)


def test_a_system_that_is_too_large_is_made_smaller_in_proportion(same: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replications, "STREAMS", (2, 2))  # equal trials: one world is like another
    for more in ({}, {"nodes": 32, "pods_per_node": 8}, {"create_rate": 100.0}, {"warm_pool": 32, "refill_s": 5.0}):
        monkeypatch.setattr(replications, "ATTEMPTS", 3_300)
        monkeypatch.setattr(replications, "BUDGET", 130_000)
        asked = {"trajectories": 2_600, "workers": 128, "prompts": 64, "group_size": 4, "run_sd": 0.0} | more
        small = attributed(same, **asked)
        monkeypatch.setattr(replications, "ATTEMPTS", 130_000)
        whole = attributed(same, **asked)
        assert "size" in {one.name for one in small.assumptions}
        assert "size" not in {one.name for one in whole.assumptions}
        assert small.steps == whole.steps == 11
        assert small.run.worker_hours.value == pytest.approx(whole.run.worker_hours.value, rel=0.03)
        assert small.run.step_s.value == pytest.approx(whole.run.step_s.value, rel=0.05)
        assert small.sandbox.worker_hours.value == pytest.approx(whole.sandbox.worker_hours.value, rel=0.05)


@pytest.mark.parametrize(
    ("hopeless", "what"),
    [
        ({"failure_hazard": 1e6}, "attempts succeed"),
        ({"failure_rate": 0.999}, "attempts succeed"),
        ({"failure_rate": 0.8, "on_failure": "resample"}, "groups are without"),
    ],
)
def test_what_would_hardly_ever_end_is_refused(same: Path, hopeless: dict[str, Any], what: str) -> None:
    with pytest.raises(TrainingRunError, match=rf"{what}.*: add --max-attempts A$"):
        row(same, **hopeless)
    assert row(same, **hopeless, max_attempts=2).attempts <= 2


@pytest.mark.slow
def test_intervals_hold_the_truth_where_repetitions_differ(tmp_path: Path) -> None:
    """The small version of tests/studies/study_attribution.py: three repetitions with an sd of 5 % between them."""
    truth = attributed_run(recorded(tmp_path, 0, 1, 0.0, trials=2_000), effort=0.5)
    found = [attributed_run(recorded(tmp_path, seed, 3, 0.05, trials=600), seed=seed) for seed in range(1, 11)]
    for amount in AMOUNTS:
        for unit in ("step_s", "worker_hours"):
            assert sum(holds(one[amount], truth[amount], unit) for one in found) >= 8, (amount, unit)
    assert all(two_sided(one["sandbox"], "step_s") for one in found)
