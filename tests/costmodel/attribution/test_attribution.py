"""``project`` attributes a run in steps to causes: what is saved without each, how sure that is, in which units."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

from costmodel import Alternatives, Basis, Images, Interval, Pool, load, load_prices, pools, project
from costmodel.attribution import replications
from costmodel.attribution.paired_comparison import Shared, run_difference
from costmodel.attribution.row import POISONED, REQUESTED, STEP_MODEL_RULES, assumptions
from costmodel.attribution.shares import Amount, Weights
from costmodel.errors import TrainingRunError
from costmodel.projection.row import CAUSES, Attribution, Row, Share
from costmodel.training.run import Think, TrainingRun, poisoned_groups
from tests.studies.study_attribution import AMOUNTS, holds, recorded, two_sided
from tests.studies.study_attribution import attributed as attributed_run
from tests.support.cost_model.costmodel_files import S, cell, price_sheet, trial, write

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
    return row(file, prices, **asked).attribution


@pytest.fixture
def same(tmp_path: Path) -> Path:
    """Trials of 9 s: create 2, ready 1, three commands of 1.25 s that ran for 1 s, gaps of 0.75 s; clean-up 4."""
    each = {"runs": [S] * 3, "actions": [S * 5 // 4] * 3, "gaps": [S * 3 // 4] * 3, "cleanup": 4 * S}
    return write(tmp_path / "same.msgpack", [trial(n, **each) for n in range(12)])


@pytest.fixture
def varied(tmp_path: Path) -> Path:
    rng = Random(1)

    def lasting(count: int) -> list[int]:
        return [round(rng.lognormvariate(0, 0.5) * S) for _ in range(count)]

    trials = []
    for n in range(34):
        [create], took = lasting(1), lasting(5 if n < 30 else 1)
        failed: dict[str, Any] = {"runs": [t * 3 // 4 for t in took]} if n < 30 else {"outcome": "failed"}
        trials.append(trial(n, create=create, actions=took, **failed))
    return write(tmp_path / "varied.msgpack", trials, cell(actions=5))


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
    assert (less.attempts, more.attempts) == (1, pytest.approx(2, rel=0.1))
    assert more.worker_hours.value == pytest.approx(1.5 * less.worker_hours.value, rel=0.1)
    assert more.tax_worker_hours == more.attribution.sandbox.worker_hours
    assert more.gpu == {"sync": more.attribution.waiting}
    assert more.wall_clock_hours.value * HOUR == pytest.approx(100 * more.attribution.run.step_s.value)
    (quick,) = project([load(varied)], TrainingRun(**STEPS, failure_rate=0.5), effort=0.0)
    assert quick.attribution is None
    assert quick.attempts == pytest.approx(2, rel=0.2)
    assert row(varied, failure_rate=0.5, on_failure="mask").delivered == pytest.approx(0.5, rel=0.1)


def test_nodes_are_paid_for_as_long_as_the_run_lasts(same: Path, tmp_path: Path) -> None:
    sheet = price_sheet(tmp_path, "usd_per_hour = 3600", worker=7200)
    asked = row(same, sheet, run_sd=0.0, nodes=2, pods_per_node=16, node_usd_hour=36.0)
    found, lasts_s = asked.attribution, 9 + 99 * 9
    assert found.run.usd.value == pytest.approx(2 * 36 * lasts_s / HOUR + 1600 * 2 * 9 + 1600 * 13, rel=1e-6)
    assert found.usd_per_critical_second == pytest.approx(100 * 72 / HOUR)
    assert found.causes["cleanup"].usd.value == pytest.approx(1600 * 4)
    assert asked.cost.sandbox_usd.value == pytest.approx(1600 * 13)


@pytest.mark.parametrize(("tariff", "usd"), [('cpu = "active"', 10), ('idle = "free"', 50.5)])
def test_steps_bill_cpu_and_idle_time_of_the_asked_model_time(tmp_path: Path, tariff: str, usd: float) -> None:
    """Commands of 10 s with as much CPU time, and 81 s of model time that the recording lacks, 3,600 times."""
    busy = [trial(n, create=0, ready=0, actions=[S] * 10, cpus=[S] * 10) for n in range(12)]
    file = write(tmp_path / "busy", busy, cell(actions=10))
    sheet = price_sheet(tmp_path, f"usd_per_vcpu_hour = 1\n{tariff}")
    asked = {"trajectories": 3600, "workers": 100, "think": Think(9 * S, 0.0)}
    (plain,) = project([load(file)], TrainingRun(**asked), load_prices(sheet))
    (found,) = project([load(file)], TrainingRun(**asked, batch=100, failure_rate=0.0), load_prices(sheet))
    assert plain.cost.sandbox_usd.value == pytest.approx(usd)
    assert found.cost.sandbox_usd.value == found.attribution.run.usd.value == pytest.approx(usd)


def disputed(folder: Path, substrate: str = "docker") -> Path:
    """A dollar a second, or a third as much more or less, as two sources disagree."""
    sheet = price_sheet(folder, "usd_per_hour = [2400, 4800]", substrate=substrate)
    sheet.write_text(sheet.read_text().replace('"x"', '["x", "y"]'))
    return sheet


@pytest.mark.parametrize("asked", [{}, {"failure_rate": 0.0}])
def test_a_disputed_price_is_no_surer_in_steps(same: Path, tmp_path: Path, asked: dict[str, float]) -> None:
    found = attributed(same, disputed(tmp_path), run_sd=0.0, **asked)
    for amount, usd in ((found.run.usd, 1600 * 13), (found.causes["cleanup"].usd, 1600 * 4)):
        assert amount == pytest.approx((usd, usd * 2 / 3, usd * 4 / 3))


def test_the_dollars_of_a_run_include_the_idle_sandboxes_of_all_images(same: Path, tmp_path: Path) -> None:
    """Four images in flight with two sandboxes each, over 100 steps of 9 s; a sandbox costs a dollar a second."""
    found = row(same, price_sheet(tmp_path, "usd_per_hour = 3600"), warm_pool=2, run_sd=0.0)
    assert found.warm_pool.idle_sandboxes == pytest.approx(8)
    assert found.cost.idle_pool_usd == pytest.approx(8 * 100 * 9)
    assert found.attribution.run.usd.value == pytest.approx(found.cost.total_usd) == pytest.approx(1600 * 13 + 7200)


@pytest.mark.parametrize("asked", [{}, {"failure_rate": 0.0}])
def test_a_sandbox_is_cleaned_up_and_billed_beyond_the_limit(tmp_path: Path, asked: dict[str, float]) -> None:
    """Of 4 s or 9 s, each cleaned up for 3 s: with a limit of 10 s a success pays for 7 s, and a failure for 12 s."""
    trials = [trial(n, create=0, ready=0, actions=[(4, 9)[n % 2] * S], cleanup=3 * S) for n in range(40)]
    file, sheet = write(tmp_path / "cut", trials, cell(actions=1)), price_sheet(tmp_path, "usd_per_hour = 3600")
    found = row(file, sheet, timeout_s=10.0, include_cleanup=True, **asked)
    assert found.cost.sandbox_usd.value == pytest.approx(1600 * 19, rel=0.03)


@pytest.mark.parametrize("policy", ["sync", "async"])
def test_a_recycled_sandbox_is_one_life(same: Path, tmp_path: Path, policy: str) -> None:
    """Each of 4 workers runs 4 rollouts of a step in one sandbox, from 9 s with a create to 6 s, then 4 s of clean-up.

    A minute is billed at least, at a dollar a second.
    """
    sheet = price_sheet(tmp_path, "usd_per_hour = 3600\nusd_per_create = 10", minimum_s=60)
    found = row(same, sheet, recycle_s=0.0, workers=4, run_sd=0.0, policy=policy)
    assert found.attribution.run.usd.value == pytest.approx(100 * 4 * (60 + 10), rel=0.01)


@pytest.mark.parametrize(("repetitions", "noise"), [(0, 0.4), (3, 0.05)])
def test_intervals_hold_the_truth_of_trials_and_of_whole_repetitions(repetitions: int, noise: float) -> None:
    """Without n/(n − 1), t of n − 1, or the half of the variance that is no chance, .92, .83 and .86 do."""
    rng, inside = Random(5), 0

    def draws(count: int, sd: float) -> list[float]:
        return [rng.gauss(0, sd) for _ in range(count)]

    for _ in range(1000):
        if repetitions:
            own = draws(repetitions, repetitions**0.5)
            off = -fmean(own)
            left_open = [fmean(rng.choices(own, k=repetitions)) + off for _ in range(9)]
        else:
            off, *left_open = draws(10, 1.0)
        plain = [draws(3, noise) for _ in range(9)]
        twins = [[ns + one / 3 for ns in draws(3, noise)] for one in left_open]
        sides = [[[steps] for steps in streams] for streams in (plain, twins)]
        found = Amount(*sides, *[Weights([[1.0] * 3], [])] * 2, repetitions).of(0)
        inside += found.low <= off <= found.high
    assert inside / 1000 > 0.93


@pytest.mark.parametrize(
    "more", [{}, {"nodes": 32, "pods_per_node": 8}, {"create_rate": 100.0}, {"warm_pool": 32, "refill_s": 5.0}]
)
def test_a_system_that_is_too_large_is_made_smaller_in_proportion(
    same: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    monkeypatch.setattr(replications, "STREAMS", (2, 2))  # equal trials: one world is like another
    monkeypatch.setattr(replications, "BUDGET", 130_000)
    asked = {"trajectories": 2_600, "workers": 128, "prompts": 64, "group_size": 4, "run_sd": 0.0} | more
    found = []
    for attempts, reduced in ((3_300, True), (160_000, False)):
        monkeypatch.setattr(replications, "ATTEMPTS", attempts)
        found.append(attributed(same, **asked))
        assert ("size" in {one.name for one in found[-1].assumptions}) == reduced
    small, whole = found
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
    truth = attributed_run(recorded(tmp_path, 0, 1, 0.0, trials=2_000), effort=0.3)
    found = [attributed_run(recorded(tmp_path, seed, 3, 0.05, trials=600), seed=seed) for seed in range(1, 8)]
    for amount in AMOUNTS:
        for unit in ("step_s", "worker_hours"):
            assert sum(holds(one[amount], truth[amount], unit) for one in found) >= 6, (amount, unit)
    assert all(two_sided(one["sandbox"], "step_s") for one in found)


ASSUMED = Basis(1, 0.08, measured=False, source="as shipped")


def stated(scale: int = 1, **asked: Any) -> dict[str, tuple[str, str]]:
    training_run = TrainingRun(**{"trajectories": 1000, "workers": 64, "prompts": 4, "group_size": 4} | asked)
    evidence: Any = SimpleNamespace(basis=ASSUMED, attempts=1200, failure=Fraction(3, 1200), dropped=Fraction(0))
    found = list(assumptions(training_run, evidence, scale))
    assert len({one.name for one in found}) == len(found)
    return {one.name: (one.value, one.source) for one in found}


def test_what_is_asked_for_is_told_with_its_unit_and_what_is_usual_is_not() -> None:
    found = stated(train_s=60.0, gpus=8, gpu_usd_hour=2.5, timeout_s=900.0, include_cleanup=True)
    units = {"train_s": "60 s", "gpu_usd_hour": "2.5 $ an hour", "timeout_s": "900 s", "include_cleanup": "yes"}
    assert {name: found[name] for name in units} == {name: (value, REQUESTED) for name, value in units.items()}
    assert "policy" not in found
    assert found["failure_rate"] == ("3 of 1,200 attempts", "measured")


def test_the_share_of_groups_with_a_failed_attempt_is_told() -> None:
    assert stated(failure_rate=0.05)[POISONED] == ("19%, 1 − (1 − 0.05)^4", REQUESTED)
    bursts = stated(failure_rate=0.05, failure_burst=3)[POISONED]  # a group touches two
    assert bursts == ("10%, 1 − (1 − 0.05)^(bursts in the group)", REQUESTED)
    assert stated()[POISONED] == ("1%, 1 − (1 − 0.0025)^4", "measured")
    assert POISONED not in stated(failure_rate=0.0)
    assert POISONED not in stated(prompts=None, group_size=None, batch=16)


@pytest.mark.parametrize(("group", "burst"), [(4, 3), (16, 6), (8, 6), (5, 4), (16, 4), (4, 16), (7, 1)])
def test_a_group_is_poisoned_by_each_burst_that_it_touches(group: int, burst: int) -> None:
    touched = [
        len({place // burst for place in range(first, first + group)}) for first in range(0, group * burst, group)
    ]
    assert poisoned_groups(0.05, group, burst) == pytest.approx(fmean(1 - 0.95**bursts for bursts in touched))


def test_gpus_wait_for_the_wall_clock_of_their_row(varied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replications, "BUDGET", 100_000)
    found = row(varied, trajectories=6400, train_s=400.0, gpus=8, think=Think(8 * S, 1.2), failure_rate=0.05)
    wall = found.wall_clock_hours.value
    assert found.gpu["sync"].waiting_gpu_hours == pytest.approx(8 * (wall - 400 * 400 / HOUR))


def test_rollouts_during_a_training_take_no_longer_and_workers_idle_as_long(same: Path) -> None:
    steps = row(same, workers=20, policy="one-step-off", train_s=60.0).steps
    assert steps.step.value_ns == pytest.approx(9 * S)
    assert steps.idle_worker_hours == pytest.approx(100 * 4 * 9 / HOUR)


def test_failures_after_the_projected_actions_are_none(tmp_path: Path) -> None:
    late = [trial(n, actions=[S, S], outcome="failed", error="CancelledError") for n in range(10, 20)]
    file = write(tmp_path / "late", [*map(trial, range(10)), *late])
    for actions, failed in ((None, "10 of 20 attempts"), (1, "0 of 20 attempts")):
        told = {item.name: item.value for item in attributed(file, actions=actions).assumptions}
        assert told["failure_rate"] == failed
        assert (POISONED in told) == ("failures without a retry" in told) == (actions is None)


def test_images_bring_along_what_nobody_said_about_them() -> None:
    nodes = {"nodes": 4, "pods_per_node": 16, "images": Images.of([2.0, 4.0])}
    found = stated(**nodes, pull_gb_s=0.1)
    assert (found["placement"][1], found["pull_gb_s"]) == (STEP_MODEL_RULES, ("0.1 GB/s", REQUESTED))
    assert stated(**nodes, placement="prepulled")["placement"] == ("prepulled", REQUESTED)


PAIRED = TrainingRun(
    trajectories=64, workers=8, batch=8, group_size=4, gpus=2, gpu_usd_hour=3600.0, think=Think(5 * S, 0.5), run_sd=0.0
)
"""8 steps; two GPUs cost $2 a second."""
PAIRED_ON_NODES = replace(PAIRED, nodes=2, pods_per_node=4, images=Images.between(2, 8, 50), pull_gb_s=1.0)


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Pool]:
    """One creates 10 s longer than the other, else they are alike."""
    trials = [
        trial(10 * place + n, cell=place, create=(2 + 10 * place) * S, runs=[S // 2] * 3)
        for place in (0, 1)
        for n in range(8)
    ]
    return list(
        pools([load(write(tmp_path_factory.mktemp("pairs") / "r", trials, cell(0), cell(1, substrate="local")))])
    )


def test_what_both_share_cancels(cells: list[Pool]) -> None:
    same = run_difference(Alternatives(cells[0], PAIRED, None), Alternatives(cells[0], PAIRED, None))
    assert same.usd == (0.0, 0.0, 0.0)
    slower = run_difference(Alternatives(cells[1], PAIRED, None), Alternatives(cells[0], PAIRED, None))
    assert slower.usd.value == pytest.approx(8 * 10 * 2, rel=1e-6)  # steps, s, $ a second: think times are the same
    assert slower.usd.low == pytest.approx(slower.usd.value)
    assert slower.worker_hours.value == pytest.approx(64 * 10 / 3600, rel=1e-6)


def test_a_disputed_price_cancels_only_against_itself(cells: list[Pool], tmp_path: Path) -> None:
    """64 rollouts of 6 s and two pauses of 5.67 s, at a dollar a second."""
    unsure, fixed = load_prices(disputed(tmp_path)), load_prices(price_sheet(tmp_path, "usd_per_hour = 3600"))
    runs = [Alternatives(cells[0], PAIRED, prices) for prices in (unsure, unsure, fixed)]
    assert run_difference(*runs[:2]).usd == (0.0, 0.0, 0.0)
    half = 64 * (6 + 2 * 5.67) / 3
    assert run_difference(*runs[1:]).usd == pytest.approx((0.0, -half, half), rel=0.1)


def test_a_place_with_nodes_is_paired_with_one_without(cells: list[Pool]) -> None:
    one, other = Alternatives(cells[0], PAIRED_ON_NODES, None), Alternatives(cells[0], PAIRED, None)
    pulls, back = run_difference(one, other), run_difference(other, one)
    assert pulls.usd.value > 0
    assert back.usd.value == pytest.approx(-pulls.usd.value)
    shared: Shared = {}
    assert run_difference(one, other, shared=shared) == pulls
    assert run_difference(other, one, shared=shared) == back, "what both have is simulated once, and is the same"
    assert run_difference(one, other, limits=False) == Share(*(amount and Interval(amount.value) for amount in pulls))


def test_other_steps_or_other_nodes_are_not_paired(cells: list[Pool]) -> None:
    run = Alternatives(cells[0], PAIRED, None)
    assert run_difference(run, Alternatives(cells[0], replace(PAIRED, trajectories=32), None)) is None
    nodes = Alternatives(cells[0], PAIRED_ON_NODES, None)
    assert run_difference(nodes, Alternatives(cells[0], replace(PAIRED_ON_NODES, nodes=3), None)) is None


def test_other_runs_are_resampled_each_for_themselves(tmp_path: Path) -> None:
    trials = [trial(n, create=(2 + n % 5) * S, runs=[S // 2] * 3) for n in range(20)]
    one, two = (pools([load(write(tmp_path / name, trials, cell(0), run_id=name))]) for name in ("one", "two"))
    apart = run_difference(*(Alternatives(next(iter(pool)), PAIRED, None) for pool in (one, two)))
    assert apart.usd.value == 0  # the same trials, drawn alike
    assert apart.usd.low < 0  # but who knows whether the runs were


def test_what_lasts_for_the_first_steps_is_not_of_every_step(same: Path) -> None:
    """A burst of creates, ready sandboxes, and a build: 100 steps of 16 trials of 9 s at once."""
    fast, slow = STEPS, {"create_rate": 1.0, "create_burst": 400}
    found = row(same, **fast, **slow)
    assert found.wall_clock_hours.value * HOUR == pytest.approx(1600 - 400 + 9, rel=0.01)
    ready = row(same, **fast, warm_pool=400, refill_rate=0.5)
    assert ready.warm_pool is not None
    assert ready.warm_pool.hit == pytest.approx((400 + ready.wall_clock_hours.value * HOUR / 2) / 1600, rel=0.02)
    images = {"nodes": 4, "pods_per_node": 4, "images": Images.of([1]), "pull_gb_s": 1.0, "build_s": 600.0}
    once = attributed(same, run_sd=0.0, **fast, **images).causes["image_pull"]
    assert once is not None
    assert once.step_s.value * 100 == pytest.approx(601, abs=2)


def test_a_resample_without_a_trial_in_time_is_not_simulated(tmp_path: Path) -> None:
    file = write(tmp_path / "slow", [trial(n, actions=[(5 + 5 * (n > 0)) * S]) for n in range(20)], cell(actions=1))
    alone = {"trajectories": 40, "workers": 4, "batch": 4, "prompts": None, "group_size": None}
    assert row(file, **alone, timeout_s=9).attempts == pytest.approx(20, rel=0.5)
