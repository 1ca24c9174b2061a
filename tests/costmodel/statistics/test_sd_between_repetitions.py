"""What runs add to an interval and to a verdict, where the truth is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import stdev

import pytest

from costmodel import INCONCLUSIVE, Recording, TrainingRun, compare, pools, project, read_recording
from costmodel.statistics.intervals import correlation_time, mean_interval, student_t
from costmodel.statistics.repetitions import WITHIN_ONLY, Assumed, Estimate, assumed, basis, between, interval
from costmodel.statistics.verdict import CANNOT_TELL, DIFFERS, TIE, UNKNOWN, Finding, judge, paired_log_ratio, ratio
from tests.support.cost_model.costmodel_files import S, trial, write
from tests.support.cost_model.repeated import TRUTH, estimated, estimated_trials, measured, rates

RECORDINGS = Path(__file__).parents[3] / "recordings"
ONCE = TrainingRun(trajectories=1, workers=1)
USUAL = assumed("local")


def test_equal_blocks_and_equal_runs_give_students_interval_of_their_means() -> None:
    """With equal counts and little variance within, random effects are the t interval of the runs' means."""
    blocks = [1.0, 2.0, 4.0, 9.0]
    found = mean_interval([value for value in blocks for _ in range(10)], [at for at in range(4) for _ in range(10)])
    half = student_t(3) * stdev(blocks) / 2
    assert found == pytest.approx((4.0, 4.0 - half, 4.0 + half))
    means = [10.0, 11.0, 12.5]
    one = estimated([[mean - 1e-6, mean, mean + 1e-6] for mean in means])
    low, high = interval(one, USUAL)[1:]
    half = student_t(2) * stdev(means) / math.sqrt(3)
    assert (one.value - low, high - one.value) == pytest.approx((half, half), rel=1e-3)
    assert basis(one, USUAL).measured
    assert math.sqrt(between([one])) * one.value == pytest.approx(stdev(means), rel=1e-3)
    single = estimated([[mean] for mean in means])  # without a variance of their own
    assert math.sqrt(between([single])) * single.value == pytest.approx(stdev(means))
    assert between([estimated([[10.0]] * 3)]) == 0


def test_a_large_run_does_not_make_small_ones_certain() -> None:
    """Nearly all the trials are of one run: clustered by run, the others would seem to add next to nothing."""
    rng = Random(1)
    one = estimated([[rng.gauss(mean, 0.1) for _ in range(count)] for mean, count in ((9, 5), (10, 990), (11, 5))])
    low, high = interval(one, USUAL)[1:]
    assert low < 9 < 11 < high


def test_one_run_has_two_intervals_and_the_wider_one_says_what_it_assumes() -> None:
    one = estimated([[9.0, 10.0, 11.0] * 10])
    low, high = one.within[1:]
    wide_low, wide_high = interval(one, Assumed(0.07, "a file"))[1:]
    factor = math.exp(1.959964 * 0.07)
    assert wide_low == pytest.approx(10 - math.hypot(10 - low, 10 * (1 - 1 / factor)))
    assert wide_high == pytest.approx(10 + math.hypot(high - 10, 10 * (factor - 1)))
    assert interval(one, Assumed(0.0, "given", by_user=True)) == one.within
    assert basis(one, Assumed(0.07, "a file")) == (1, 0.07, False, "a file")
    assert "none of this substrate" in assumed("elsewhere").source


def test_neighbours_that_correlate_are_worth_less() -> None:
    rng = Random(2)
    values = [0.0]
    for _ in range(2000):
        values.append(0.8 * values[-1] + rng.gauss(0, 0.6))
    assert correlation_time([values]) == pytest.approx((1 + 0.8) / (1 - 0.8), rel=0.35)
    independent = [rng.gauss(0, 1) for _ in range(2000)]
    assert correlation_time([independent]) < 1.3
    assert correlation_time([independent], only_if_seen=True) == 1
    assert correlation_time([[0.0, 0.0]]) == 1


def test_verdicts() -> None:
    seven = Assumed(0.07, "a file")

    def judged(mean: float, runs: int = 1, name: str = "r") -> Finding:
        one, other = (
            estimated([[value - 0.1, value, value + 0.1] * 10] * count, of)
            for value, count, of in ((mean, runs, name), (10.0, 1, "s"))
        )
        return judge(one, other, seven).verdict

    told = judged(11.1)
    assert (told.kind, told.reason, told.tie) == (CANNOT_TELL, "from one run each (runs differ by ±19 %)", None)
    assert judged(11.1, 2).reason.startswith("from two runs and one run")
    assert [judged(mean).kind for mean in (15.0, 10.01)] == [DIFFERS, TIE]
    assert judged(11.1, name="s").kind == DIFFERS, "both of one run"
    assert judge(estimated([[1.0]]), estimated([[1.0]]), seven).verdict.kind == UNKNOWN


@pytest.mark.parametrize("run_sd", [0.05, 0.10])
def test_rates_of_false_and_found_differences(run_sd: float) -> None:
    """Simulated runs with a known sd between them; tests/studies/study_power.py has larger ones."""
    rounds = 60
    false_across = false_inside = found_inside = held = 0
    for seed in range(rounds):
        rng = Random(f"{run_sd}:{seed}")
        first, second = measured(rng, 3, run_sd, 40), measured(rng, 3, run_sd, 40)
        one, other = estimated(first["a"], "r"), estimated(second["a"], "s")
        false_across += judge(one, other, USUAL).verdict.kind == DIFFERS
        low, high = interval(one, USUAL)[1:]
        held += low <= TRUTH["a"] <= high
        alone = {name: estimated(runs[:1]) for name, runs in first.items()}
        false_inside += judge(alone["b"], alone["a"], USUAL).verdict.kind == DIFFERS
        found_inside += judge(alone["slower by 20 %"], alone["a"], USUAL).verdict.kind == DIFFERS
    assert false_across <= 0.12 * rounds  # .05 and what 60 rounds leave open
    assert false_inside <= 0.12 * rounds
    assert held >= 0.88 * rounds
    assert found_inside == rounds


def repeated(path: Path, count: int) -> Recording:
    """A recording of three repetitions with so many trials each."""
    trials = [
        trial(count * run + n, create=(4 + n % 3 + run) * S, repetition=run, block=n)
        for run in range(3)
        for n in range(count)
    ]
    return read_recording(write(path, trials, run_id=path.name))


def test_repetitions_of_one_recording_are_runs(tmp_path: Path) -> None:
    recording = repeated(tmp_path / "a", 6)
    (row,), (given,) = project([recording], ONCE), project([recording], replace(ONCE, run_sd=0.5))
    assert row.evidence.basis[:1] == (3,)
    assert row.evidence.basis.measured
    assert "few_runs" not in row.flags
    assert (given.evidence.basis.sd, given.evidence.basis.measured) == (0.5, False)
    widths = [one.held_per_success_s.high - one.held_per_success_s.low for one in (row, given)]
    assert widths[0] < widths[1]
    few = read_recording(write(tmp_path / "one", [trial(0)], run_id="one"))
    assert project([few], ONCE)[0].held_per_success_s.low is None
    change, *_ = compare([few], [recording]).comparisons
    assert (change.verdict, change.reason) == (INCONCLUSIVE, "too few independent values for an interval")


@pytest.mark.parametrize("name", ["aa", "drift"])
def test_six_real_repetitions(name: str) -> None:
    found = rates(RECORDINGS / f"{name}.msgpack")
    assert found.falsely_different <= 0.05
    # A 95 % interval is of the truth: another run's mean, as uncertain as its own, lies in it in 83 %.
    assert found.inside >= 0.83
    assert found.found_20_inside >= 0.90
    assert found.found_5_inside_all


@pytest.mark.parametrize(
    ("substrate", "names"), [("local", ["drift"]), ("docker", ["drift"]), ("kubernetes", ["kubernetes", "kubernetes2"])]
)
def test_what_is_assumed_of_runs_is_what_the_shipped_ones_show(substrate: str, names: list[str]) -> None:
    cells = pools(read_recording(RECORDINGS / f"{name}.msgpack") for name in names)
    told = [estimated_trials(pool.trials) for pool in cells if pool.identity.substrate == substrate]
    repeated = [one for one in told if len(one.parts) > 1]
    assert round(math.sqrt(between(repeated)), 2) == assumed(substrate).sd
    assert f"runs of {len(repeated)} cells" in assumed(substrate).source


OF_DOCKER = assumed("docker")
RUN_S = (9.6, 17.0, 20.4)
"""Mean times of three repetitions on a busy machine: the drift that made 2.8 times as slow a tie."""


def drifting(
    rng: Random, runs: tuple[float, ...], blocks: int, truth: float, apart: float = 0.0
) -> tuple[Estimate, Estimate]:
    """Two cells that share a drift, the first ``truth`` times as slow; ``apart``: the sd of that between runs."""
    one: list[list[float]] = [[] for _ in runs]
    other: list[list[float]] = [[] for _ in runs]
    for run, run_s in enumerate(runs):
        state, own = rng.gauss(0, 0.3), math.exp(rng.gauss(0, apart))
        for _ in range(blocks):
            state = 0.8 * state + rng.gauss(0, 0.2)
            one[run].append(run_s * truth * own * math.exp(state + rng.gauss(0, 0.1)))
            other[run].append(run_s * math.exp(state + rng.gauss(0, 0.1)))
    return estimated(one), estimated(other)


def test_what_is_slower_in_every_block_is_no_tie_however_the_machine_drifts() -> None:
    docker, nspawn = drifting(Random(4), RUN_S, 8, 2.7, apart=0.1)
    found = ratio(docker, nspawn, OF_DOCKER)
    assert found.value == docker.value / nspawn.value
    assert found.low > 1.5
    assert found.high < 5
    judged = judge(docker, nspawn, OF_DOCKER)
    assert judged.verdict.kind == DIFFERS
    assert judged.value.low > 0, "the difference says what its ratio says"


def test_a_drift_that_both_share_cancels_and_what_has_no_logarithm_has_no_interval() -> None:
    rng = Random(1)
    drift = [math.exp(rng.gauss(0, 1)) for _ in range(20)]
    found = ratio(estimated([[3 * one for one in drift]]), estimated([drift]), OF_DOCKER)
    assert found == pytest.approx((3, 3, 3))
    one, other = estimated([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), estimated([[1.0, 2.0, 3.0]] * 2)
    assert paired_log_ratio(one, other, OF_DOCKER) is None
    assert judge(one, other, OF_DOCKER).verdict.kind == UNKNOWN
    few = estimated([[1.0], [2.0]])
    assert ratio(few, few, OF_DOCKER) == (1.0, None, None)


def test_two_repetitions_whose_ratios_differ_decide_by_students_t_of_two() -> None:
    """Each repetition alone is sure, and one says the contrary of the other."""
    noise = [1.0, 1.01, 0.99, 1.0] * 5
    one = estimated([[1.3 * each for each in noise], [0.9 * each for each in noise[1:] + noise[:1]]])
    other = estimated([noise, noise])
    assert judge(one, other, OF_DOCKER).verdict.kind == TIE
    assert judge(one, other, WITHIN_ONLY).verdict.kind == DIFFERS, "an sd that is given stands in for what runs show"


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_equal_cells_are_said_to_differ_in_one_of_twenty(runs: int) -> None:
    """The seeded A/A study, small: 150 pairs. 1,000 pairs with 30 blocks gave .045, .024 and .017."""
    rounds = 150
    false = planted = 0
    for seed in range(rounds):
        rng = Random(f"{runs}:{seed}")
        level_s = tuple(math.exp(rng.gauss(0, 0.3)) for _ in range(runs))
        false += judge(*drifting(rng, level_s, 15, 1.0), OF_DOCKER).verdict.kind == DIFFERS
        planted += judge(*drifting(rng, level_s, 15, 1.5), OF_DOCKER).verdict.kind == DIFFERS
    assert false <= 0.06 * rounds
    assert planted >= 0.9 * rounds
