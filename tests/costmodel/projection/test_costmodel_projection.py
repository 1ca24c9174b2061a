"""``project`` from small recordings whose numbers can be worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from costmodel import Interval, Length, Row, SourceError, Think, load, load_prices, project
from tests.support.asking import HOUR, ask, hours, one
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, frame, header, health, price_sheet, trial, write
from tests.support.cost_model.simulating import attribute_coarsely


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    attribute_coarsely(monkeypatch)


@pytest.mark.parametrize("length", [3, 2, 9])
def test_wrapper_time_is_neither_dispatch_nor_tax_at_any_length(tmp_path: Path, length: int) -> None:
    """Cut, as recorded and continued: of 2 s, 1 s is the run and a quarter is the wrapper."""
    known = trial(1, actions=[2 * S] * 3, runs=[S] * 3, wrappers=[S // 4] * 3)
    unknown = trial(1, actions=[2 * S] * 3, runs=[S] * 3)
    rows = [one(write(tmp_path / name, [events]), actions=length) for name, events in (("a", known), ("b", unknown))]
    causes = [row.by_cause_worker_hours for row in rows]
    assert (causes[0].dispatch, causes[0].wrapper) == pytest.approx((0.75 * length, 0.25 * length))
    assert (causes[1].dispatch, causes[1].wrapper) == (pytest.approx(length), None)
    taxes = [row.tax_worker_hours.value for row in rows if row.tax_worker_hours]
    assert taxes[1] - taxes[0] == pytest.approx(0.25 * length)
    assert hours(rows[0]) == hours(rows[1])


def test_worker_hours_tax_and_causes_by_hand(tmp_path: Path) -> None:
    trials = [
        trial(1, create=2 * S, ready=S, setup=[(3 * S, 2 * S)], actions=[2 * S] * 3, runs=[S] * 3, thinks=[S] * 3),
        trial(2, create=4 * S, ready=S, setup=[(3 * S, 2 * S)], actions=[2 * S] * 3, runs=[S] * 3, queued=2 * S),
        trial(3, create=S, ready=S, actions=[2 * S], outcome="failed"),
    ]
    row = one(write(tmp_path / "a", trials))
    assert (row.trials, row.failures) == (3, 1)
    held = (15 + 16 + 4) / 2
    assert hours(row) == pytest.approx(held)
    assert row.trajectory_s.mean.value == pytest.approx((12 + 14) / 2)  # think time and throttles are not latency
    assert row.tax_worker_hours.value == pytest.approx(held - 3 / 2 - 5)
    causes = ((3 + 5) / 2, 4, None, None, 5, None, 0, 1, 1.5, 2, None, None)
    assert row.by_cause_worker_hours == pytest.approx(causes)
    assert row.think_s == pytest.approx(1.5)
    assert row.attempts == pytest.approx(1.5)
    assert row.delivered == 1


def test_wall_clock_is_the_makespan_of_what_workers_do(tmp_path: Path) -> None:
    file = write(tmp_path / "a", [trial(n) for n in range(5)])
    row = one(file, trajectories=25, workers=10)
    assert row.wall_clock_hours.value * HOUR == pytest.approx(3 * 6)  # three waves of 6 s
    assert row.wall_clock_hours.fluid * HOUR == pytest.approx(2.5 * 6)
    assert row.wall_clock_hours.method == "bounds"
    for more in ({}, {"batch": 5, "gpus": 1}):
        nothing = one(file, trajectories=0, **more)
        assert (hours(nothing), nothing.wall_clock_hours.value) == (0, 0)
    failing = [trial(n, actions=[S + n * n % 41 * S // 7] * 3) for n in range(39)]
    failing.append(trial(40, actions=[S], outcome="failed"))
    large = one(write(tmp_path / "b", failing), trajectories=200_000, workers=10_000).wall_clock_hours
    assert large.method == "renewal"
    assert large.error <= 0.01 * large.value


def test_a_cap_on_attempts_waits_between_them_and_a_timeout_that_fails_what_takes_longer(tmp_path: Path) -> None:
    file = write(tmp_path / "a", [trial(1), trial(2, actions=[S], outcome="failed")])
    row = one(file, max_attempts=2, backoff_s=10.0)
    assert (row.delivered, row.attempts) == (0.75, 1.5)
    assert hours(row) == pytest.approx(0.75 * (6 + 4) + 0.5 * 10)
    assert row.by_cause_worker_hours.failed == pytest.approx(0.75 * 4 + 5)
    assert hours(one(file)) == pytest.approx(10)
    late = one(write(tmp_path / "b", [trial(1), trial(2, actions=[S, S, 20 * S])]), timeout_s=10.0)
    assert (late.failures, hours(late)) == (1, pytest.approx(6 + 10))


@pytest.mark.parametrize(("error", "attempts"), [("CancelledError", 1), ("AgentTimeoutError", 1), ("SandboxLost", 2)])
def test_steps_and_limits_that_change_nothing_retry_the_same_causes(tmp_path: Path, error: str, attempts: int) -> None:
    failures = [trial(n, actions=[S], outcome="failed", error=error) for n in range(10, 20)]
    file = write(tmp_path / "a", [*map(trial, range(10)), *failures])
    for asked in ({}, {"batch": 40}, {"batch": 40, "create_rate": 1e6}):
        row = one(file, trajectories=400, workers=40, **asked)
        assert (row.attempts, row.delivered) == pytest.approx((attempts, attempts / 2), rel=0.1)
        assert hours(row) * HOUR == pytest.approx(400 * attempts * 5, rel=0.1)


def test_failures_with_and_without_a_retry_by_hand(tmp_path: Path) -> None:
    lost = [trial(n, actions=[S], outcome="failed", error=error) for n, error in enumerate(("TaskError", "Odd"), 1)]
    file = write(tmp_path / "a", [trial(0), *lost])
    row = one(file, max_attempts=2, backoff_s=10.0)
    assert (row.attempts, row.delivered) == pytest.approx((4 / 3, 4 / 9))
    assert hours(row) == pytest.approx(4 / 3 * (6 + 4 + 4) / 3 + 10 / 3)


def test_clean_up_counts_only_where_asked(tmp_path: Path) -> None:
    file = write(tmp_path / "a", [trial(1, cleanup=4 * S)])
    for asked, held_s, left_out in ((False, 6, pytest.approx(4 / 6)), (True, 10, None)):
        row = one(file, include_cleanup=asked)
        assert (hours(row), row.cleanup_share_left_out) == (pytest.approx(held_s), left_out)
        assert row.trajectory_s.mean.value == pytest.approx(6), "a trajectory's latency is the same, whatever is asked"


def test_the_nearest_recorded_length_is_used(tmp_path: Path) -> None:
    cells = [cell(0, actions=2), cell(1, actions=4), cell(2, actions=6)]
    trials = [trial(n, cell=n % 3, actions=[S] * (2, 4, 6)[n % 3]) for n in range(9)]
    recording = load(write(tmp_path / "a", trials, *cells))
    assert [row.identity.actions for row in project([recording], ask())] == [2, 4, 6]
    for actions, used in ((1, 2), (3, 4), (6, 6), (60, 6)):
        (row,) = project([recording], ask(actions=actions))
        assert (row.identity.actions, row.length.actions) == (used, actions)
        assert ("beyond_measured_length" in row.flags) == (actions > 6)
    later = write(tmp_path / "b", [trial(1), trial(2, actions=[S, S], outcome="failed")])
    assert one(later, actions=1).failures == 0
    assert one(later, actions=2).failures == 1  # its second action may be the one that failed


def test_think_time_can_be_replaced(tmp_path: Path) -> None:
    file = write(tmp_path / "a", [trial(n, thinks=[5 * S] * 3) for n in range(4)])
    assert hours(one(file)) == pytest.approx(21)
    assert hours(one(file, think=Think(0))) == pytest.approx(6)
    assert hours(one(file, think=Think(2 * S))) == pytest.approx(6 + 2 * 2)  # between two actions, as recorded
    drawn = one(file, think=Think(2 * S, 0.6))
    assert hours(drawn) == pytest.approx(6 + 2 * 2 * math.exp(0.18), rel=1e-6)
    assert drawn.tax_worker_hours == one(file).tax_worker_hours  # waiting is not the substrate's
    assert drawn.evidence.busy_ns.sd > 0  # it makes stragglers


def test_a_warm_pool_saves_create_and_ready_of_its_hits(tmp_path: Path) -> None:
    file = write(tmp_path / "a", [trial(n) for n in range(3)])
    row = one(file, warm_pool=2, group_size=4)
    assert (row.warm_pool.hit, hours(row)) == (0.5, pytest.approx(6 - 0.5 * 3))
    assert hours(one(file, warm_pool=10**4, refill_s=0.001)) == pytest.approx(3)


def test_throttles_and_quotas(tmp_path: Path) -> None:
    file = write(tmp_path / "a", [trial(n) for n in range(3)])
    row = one(file, trajectories=100, workers=50, create_rate=2.0)
    assert row.wall_clock_hours.value * HOUR == pytest.approx(99 / 2 + 6)
    assert row.wall_clock_hours.method == "events"
    waits_s = sum(min(n, 49) / 2 for n in range(50)) + 50 * (50 / 2 - 6)  # a worker asks again as soon as it can
    assert row.by_cause_worker_hours.queued * HOUR == pytest.approx(waits_s)
    assert hours(row) * HOUR == pytest.approx(100 * 6 + waits_s)
    assert row.evidence.effective_workers == 12
    row = one(file, trajectories=100, workers=50, quota=10)
    assert row.wall_clock_hours.value * HOUR == pytest.approx(60)
    assert row.wall_clock_hours.fluid * HOUR == pytest.approx(60)


def test_training_steps_and_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    file = write(tmp_path / "a", [trial(n) for n in range(3)])
    row = one(file, trajectories=25, workers=4, batch=10, train_s=30.0, gpus=8, gpu_usd_hour=3.0)
    steps_s = 18 + 18 + 12  # waves of 4 for 10, 10 and 5
    assert row.wall_clock_hours.value * HOUR == pytest.approx(steps_s + 90)
    assert row.steps.steps == 3
    assert row.steps.idle_worker_hours * HOUR == pytest.approx(4 * steps_s - 25 * 6)
    assert row.gpu["sync"].waiting_gpu_hours * HOUR == pytest.approx(8 * steps_s)
    assert row.gpu["sync"].waiting_usd == pytest.approx(3 * 8 * steps_s / HOUR)
    for policy in ("one-step-off", "async"):  # batches of the stream at 18, 30 and 42 s
        other = one(file, trajectories=25, workers=4, batch=10, train_s=30.0, gpus=8, policy=policy)
        assert other.gpu[policy].waiting_gpu_hours * HOUR == pytest.approx(8 * 18)
    assert one(file, trajectories=25, workers=4, batch=10, gpus=8).gpu["sync"].waiting_usd is None
    off = one(file, trajectories=25, workers=4, batch=10, policy="async")
    assert off.wall_clock_hours.value * HOUR == pytest.approx(42)
    throttled = one(file, trajectories=20, workers=20, batch=10, create_rate=1.0, over_provision=0.5)
    assert (throttled.steps.step.method, throttled.steps.launched) == ("events", 15)
    assert throttled.steps.step.value_ns / S == pytest.approx(9 + 6)


def test_money_by_hand(tmp_path: Path) -> None:
    sheet = price_sheet(tmp_path, "usd_per_vcpu_hour = 3600", minimum_s=8, increment_s=1, worker=0.5)
    trials = [trial(1, queued=5 * S), trial(2, cleanup=4 * S), trial(3, actions=[S], outcome="failed")]
    recording = load(write(tmp_path / "a", trials))
    (row,) = project([recording], ask(warm_pool=1, group_size=10**6), load_prices(sheet))
    per_success = (8 + 10 + 8) / 2  # 6 s and a failure of 4 s by the minimum; a throttle holds no sandbox
    assert row.cost.sandbox_usd.value == pytest.approx(HOUR * per_success)
    assert row.cost.worker_usd == pytest.approx(0.5 * hours(row))
    assert row.cost.billed_ratio == pytest.approx(26 / (6 + 10 + 4))
    parts_usd = (row.cost.sandbox_usd.value, row.cost.worker_usd, row.cost.idle_pool_usd)
    assert row.cost.total_usd == pytest.approx(sum(parts_usd))
    assert project([recording], ask())[0].cost is None


def test_runs_or_blocks_widen_the_interval(tmp_path: Path) -> None:
    def width(row: Row) -> float:
        return row.worker_hours.high - row.worker_hours.low

    def trials(**block: Any) -> list[Any]:
        found = [{"create": (2 + n % 3 + 5 * (n // 9)) * S} | ({"block": n // 9} if block else {}) for n in range(36)]
        return [trial(n, **each) for n, each in enumerate(found)]

    runs = [write(tmp_path / f"{run}", trials()[9 * run : 9 * run + 9], run_id=f"{run}") for run in range(4)]
    (many,) = project([load(path) for path in runs], ask())
    assert (many.trials, many.sources) == (36, ("0", "1", "2", "3"))
    printed("export", runs[0], runs[0], code=4)
    with pytest.raises(SourceError, match="hold the same run"):
        project([load(runs[0]), load(runs[0])], ask())
    single = one(write(tmp_path / "flat", trials()), run_sd=0.0)
    blocked = one(write(tmp_path / "blocks", trials(block=True)), run_sd=0.0)
    assert hours(many) == pytest.approx(hours(single))
    assert width(many) > 1.5 * width(single)
    assert width(blocked) > 0.9 * width(single)
    assert "few_runs" in blocked.flags
    assert "few_runs" not in many.flags


def test_few_trials_have_no_interval_and_unknown_run_time_means_unknown_tax(tmp_path: Path) -> None:
    row = one(write(tmp_path / "a", [trial(1), trial(2)]))
    assert row.trajectory_s == (Interval(6.0), None, None, None)
    assert row.worker_hours == Interval(pytest.approx(6.0))
    assert (row.wall_clock_hours.low, row.wall_clock_hours.high) == (None, None)
    row = one(write(tmp_path / "b", [trial(1, runs=[S, -1, S], thinks=[S, S, S]), trial(2)]))
    assert row.tax_worker_hours is None
    assert row.by_cause_worker_hours[1:4] == (None, None, None)  # dispatch, slowdown, work
    assert row.by_cause_worker_hours.startup == pytest.approx(3)
    assert "run_time_unknown" in row.flags


def test_flags_say_what_to_doubt(tmp_path: Path) -> None:
    few = one(write(tmp_path / "a", [trial(n, create=(20 + n % 3) * S) for n in range(4)]), trajectories=95)
    assert few.flags == (
        "beyond_measured_concurrency",
        "tail_unsupported",
        "few_trials",
        "no_failures_seen",
        "few_runs",
        "lockstep",
    )
    torn = write(tmp_path / "b", [trial(1)], cell(provenance="stand_in"), complete=False)
    torn.write_bytes(torn.read_bytes() + frame([health(lag_p99=10**8)]) + frame([header()])[:7])
    assert one(torn).flags[0] == "stand_in"
    assert "incomplete_recording" in one(torn).flags
    enough = one(write(tmp_path / "c", [trial(n) for n in range(300)]), workers=1)
    assert enough.flags == ("no_failures_seen", "few_runs")


def test_a_cell_without_success_is_a_row_of_nothing(tmp_path: Path) -> None:
    bad = [trial(n, cell=1, outcome="failed") for n in range(5)]
    cells = cell(0), cell(1, tier="T9"), cell(2, tier="T8", actions=0), cell(3, tier="T7")
    file = write(tmp_path / "a", [trial(9), *bad, trial(10, cell=2, actions=())], *cells)
    asked = ask(baseline="docker", warm_pool=1, group_size=2, think=Think(S, 1.0))
    good, nothing, bare, empty = project([load(file)], asked)
    assert hours(good) > 0
    assert hours(bare) == pytest.approx(3 / 2)  # a start without actions, every other one from the pool
    assert (empty.trials, empty.worker_hours) == (0, None)
    assert nothing.flags[0] == "no_success"
    assert (nothing.trials, nothing.failures) == (5, 5)
    unknown = ("worker_hours", "wall_clock_hours", "tax_worker_hours", "by_cause_worker_hours", "versus")
    assert {getattr(nothing, name) for name in unknown} == {None}
    with pytest.raises(SourceError, match="no cell has a successful trial") as error:
        project([load(write(tmp_path / "b", bad, cell(1)))], ask())
    assert error.value.exit_code == 4
    with pytest.raises(SourceError, match="nothing to project"):
        project([], ask())


@pytest.mark.parametrize("more", [{"warm_pool": 5, "refill_s": 100.0}, {"actions": Length.between(2, 3)}])
def test_versions_of_a_trial_support_no_percentile_that_the_trials_do_not(tmp_path: Path, more: dict[str, Any]) -> None:
    file = write(tmp_path / "a", [trial(n, create=(2 + n * n % 7) * S) for n in range(40)])
    plain, versions = one(file).trajectory_s, one(file, **more).trajectory_s
    for own, other in zip(plain[1:], versions[1:], strict=True):
        assert other.needs >= own.needs
    assert (versions.p95 and versions.p95.value, versions.p99 and versions.p99.high) == (None, None)


def billed(folder: Path, trials: list[Any], tariff: str, recorded: int, **asked: Any) -> Row:
    file = write(folder / "planted", trials, cell(0, actions=recorded, cycle=recorded))
    (row,) = project([load(file)], ask(run_sd=0.0, **asked), load_prices(price_sheet(folder, tariff)))
    return row


def test_suspended_and_killed_attempts_are_billed_the_cpu_time_that_they_used(tmp_path: Path) -> None:
    cpu_time = 'cpu = "active"\nusd_per_vcpu_hour = 1.0'
    busy = [trial(n, actions=(S,) * 3, cpus=(S,) * 3) for n in range(20)]
    for after in (None, 0.0):
        row = billed(tmp_path, busy, cpu_time, 3, batch=10, think=Think(100 * S), suspend_after_s=after)
        assert row.cost.sandbox_usd.value == pytest.approx(3)
    long = [trial(n, create=0, ready=0, actions=(s * S,), cpus=(s * S,)) for n, s in enumerate([10, 1_000] * 20)]
    assert billed(tmp_path, long, cpu_time, 1, timeout_s=100.0).cost.sandbox_usd.value == pytest.approx(110)


def test_a_rare_length_is_kept_however_many_trials_there_are(tmp_path: Path) -> None:
    trials = [trial(n, create=0, ready=0) for n in range(1_200)]
    rare = one(write(tmp_path / "a", trials), actions=Length.weighted({20: 2_999, 2_000: 1}))
    assert hours(rare) == pytest.approx((2_999 * 20 + 2_000) / 3_000)


def test_every_amount_of_longer_trajectories_has_the_error_of_their_later_cycles(tmp_path: Path) -> None:
    trials = [trial(n, create=0, ready=0, actions=(S,) * 10) for n in range(20)]
    row = billed(tmp_path, trials, "usd_per_hour = 1.0", 10, actions=200, batch=10)
    for amount in (row.worker_hours, row.cost.sandbox_usd, row.attribution.run.worker_hours, row.attribution.run.usd):
        assert (amount.low / amount.value, amount.high / amount.value) == pytest.approx((0.715, 1.0475))
