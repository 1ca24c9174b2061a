"""Intervals, percentiles, sums of pauses and curves through levels of concurrency, against what is known of them.

What runs add to an interval and to a verdict, where the truth is known.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import NormalDist, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel import (
    INCONCLUSIVE,
    Recording,
    TrainingRun,
    TrainingRunError,
    compare,
    percentile,
    pools,
    project,
    published_figures,
    read_recording,
)
from costmodel.statistics.distribution import WHOLE, Distribution, strata_of_sum
from costmodel.statistics.intervals import correlation_time, mean_interval, quantile, student_t, wilson_interval
from costmodel.statistics.quantiles import effective_count, rank_limits
from costmodel.statistics.repetitions import (
    WITHIN_ONLY,
    Assumed,
    Estimate,
    RunKey,
    assumed,
    basis,
    between,
    estimate,
    interval,
)
from costmodel.statistics.verdict import CANNOT_TELL, DIFFERS, TIE, UNKNOWN, Finding, judge, paired_ratio, ratio
from costmodel.workload.rescaling import Level, LevelCurve
from tests.support.cost_model.costmodel_files import S, trial, write
from tests.support.cost_model.repeated import TRUTH, estimated, estimated_trials, measured, rates


@pytest.mark.parametrize(("pauses", "sigma"), [(1, 0.6), (2, 1.2), (40, 0.3), (150, 1.2)])
def test_strata_ascend_and_keep_the_whole_and_its_mean(pauses: int, sigma: float) -> None:
    strata = strata_of_sum(pauses, sigma, 4)
    assert sum(one.weight for one in strata) == WHOLE
    means = [one.mean for one in strata]
    assert means == sorted(means)
    mean = math.fsum(one.weight * one.mean for one in strata) / WHOLE
    assert mean == pytest.approx(pauses * math.exp(sigma**2 / 2), rel=1e-12)
    assert strata_of_sum(0, sigma, 4) == ((WHOLE, 0.0),), "who does not pause does not think"
    assert strata_of_sum(pauses, 0.0, 4) == ((WHOLE, pauses),), "pauses without spread are their median"


def test_a_stratum_of_one_pause_is_between_its_quantiles() -> None:
    below = 0
    for one in strata_of_sum(1, 0.8, 4)[:-1]:
        edges = (below, below + one.weight)
        low, high = (math.exp(0.8 * NormalDist().inv_cdf(edge / WHOLE)) if edge else 0.0 for edge in edges)
        assert 0.99 * low <= one.mean <= 1.01 * high
        below += one.weight


(ROCK,) = (facts for facts in published_figures() if facts.name == "rock.toml")


def rock(percentile: str) -> list[Level]:
    return [Level(start.concurrency, getattr(start, percentile)) for start in ROCK.starts]


@pytest.mark.parametrize("percentile", ["p50", "p95", "p99"])
def test_the_published_curve_goes_on_within_the_interval(percentile: str) -> None:
    *known, (n, actual, _) = rock(percentile)
    found = LevelCurve.of(known).at(n)  # four levels up to 8,000, asked for 16,000
    assert found.low < actual < found.high
    assert LevelCurve.of(known).beyond(n) == 2


@pytest.mark.parametrize("limit", [8, 24, 40])
def test_a_limit_that_was_reached_is_no_slowdown_without_end(limit: int) -> None:
    """Sandboxes beyond the limit wait in line, so that each takes n / limit: 2,000 are 31 times as many as measured."""
    curve = LevelCurve.of([Level(n, max(1.0, n / limit)) for n in (1, 2, 4, 8, 16, 32, 64)])
    at_twice, far = curve.at(128), curve.at(2000)
    assert at_twice.low <= 128 / limit <= at_twice.high * (1 + 1e-9)
    assert (far.value, far.high) == (pytest.approx(64 / limit), None)


def test_levels_that_fall_are_pooled() -> None:
    curve = LevelCurve.of([Level(16, 3.0, 0.01), Level(1, 2.0, 0.01), Level(4, 1.0, 0.01)])
    assert [level.value for level in curve.levels] == pytest.approx([1.5, 1.5, 3.0])
    worth = LevelCurve.of([Level(1, 2.0, 0.01), Level(4, 1.0, 0.03)])
    assert worth.levels[0].value == pytest.approx(1.75)  # the surer one counts three times


ONE = st.tuples(st.integers(1, 5000), st.floats(0.01, 1000), st.just(0.0) | st.floats(1e-6, 10))
LEVELS = st.lists(ONE, min_size=1, max_size=7, unique_by=lambda level: level[0])


@settings(max_examples=60, deadline=None)
@given(LEVELS, st.integers(1, 20_000), st.integers(1, 20_000))
def test_more_at_a_time_is_never_faster(levels: list[tuple[int, float, float]], n: int, more: int) -> None:
    curve = LevelCurve.of([Level(*level) for level in levels])
    low, high = sorted((n, more))
    assert curve.at(low).value <= curve.at(high).value * (1 + 1e-9)
    found = curve.at(n)
    assert 0 <= found.low <= found.value * (1 + 1e-9)
    assert found.high is None or found.value <= found.high * (1 + 1e-9)


def test_student_wilson_and_quantiles() -> None:
    tabulated = {1: 12.7062, 2: 4.3027, 3: 3.1824, 10: 2.2281, 30: 2.0423, 200: 1.9719, 1000: 1.9623}
    for freedom, value in tabulated.items():
        assert student_t(freedom) == pytest.approx(value, abs=1e-4)
    assert wilson_interval(0, 100) == pytest.approx((0, 0, 0.0370), abs=1e-4)
    assert {wilson_interval(n, n).high for n in range(1, 400)} == {1.0}
    assert {wilson_interval(0, n).low for n in range(1, 400)} == {0.0}, "and no 7e-16, as rounding would have it"
    assert [quantile([1, 2, 3, 4], p) for p in (0, 0.25, 0.5, 0.51, 1)] == [1, 1, 2, 3, 4]


def test_laws_refuse_nonsense() -> None:
    for sample in ([-1], []):
        with pytest.raises(TrainingRunError):
            Distribution.of(sample)
    assert Distribution.of([2, 4]).scaled(1, 4).values == [1]


untimed = settings(deadline=None)
TAIL = Fraction(1, 40)
durations = st.integers(0, 10**12)
samples = st.lists(durations, min_size=1, max_size=500)
permille = st.integers(5, 995)
clustered = st.lists(st.lists(durations, min_size=1, max_size=12), min_size=1, max_size=12)


def below(count: int, p: Fraction) -> list[Fraction]:
    """P(Bin(count, p) < rank) for every rank from 0 to count + 1, exactly."""
    masses = (math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1))
    return list(itertools.accumulate(masses, initial=Fraction(0)))


@untimed
@given(st.integers(1, 120), permille)
def test_the_closest_ranks_whose_risk_is_at_most_a_fortieth_on_each_side(count: int, thousandths: int) -> None:
    low, high = rank_limits(count, thousandths / 1000)
    risk = below(count, Fraction(thousandths, 1000))
    # the quantile is below X(low) only if fewer than `low` values are below it; above X(high) if at least `high` are
    assert low == max((rank for rank in range(1, count + 1) if risk[rank] <= TAIL), default=None)
    assert high == min((rank for rank in range(1, count + 1) if 1 - risk[rank] <= TAIL), default=None)


@untimed
@given(samples, st.sampled_from([0.5, 0.95, 0.99]))
def test_a_number_only_with_an_upper_limit(values: list[int], p: float) -> None:
    found = percentile(sorted(values), p)
    assert (found.high is not None) == (len(values) >= found.needs)
    assert (found.value is not None) == (p == 0.5 or found.high is not None)
    if found.value is not None:
        assert sum(value <= found.value for value in values) >= p * len(values) - 1e-6
        assert sum(value < found.value for value in values) < p * len(values)
        assert found.low is None or found.low <= found.value
        assert found.high is None or found.value <= found.high


@untimed
@given(samples, st.integers(0, 499), durations)
def test_monotone_in_every_value_and_in_the_percentage(values: list[int], index: int, more: int) -> None:
    slower = values.copy()
    slower[index % len(values)] += more
    before = [percentile(sorted(values), p) for p in (0.5, 0.95, 0.99)]
    after = [percentile(sorted(slower), p) for p in (0.5, 0.95, 0.99)]
    for one, other in zip(before, after, strict=True):
        for was, now in zip(one, other, strict=True):
            assert (was is None and now is None) or (was is not None and now is not None and was <= now)
    for lesser, greater in itertools.pairwise(before):
        for one_end, other_end in zip(lesser[:3], greater[:3], strict=True):
            assert one_end is None or other_end is None or one_end <= other_end


@untimed
@given(clustered)
def test_actions_are_worth_between_one_value_and_all_of_them(trials: list[list[int]]) -> None:
    values = [value for trial in trials for value in trial]
    ascending = sorted(values)
    worth = effective_count(trials, ascending[len(values) // 2])
    assert 1 <= worth <= len(values)
    assert len(trials) >= 3 or worth == len(trials)
    found = percentile(ascending, 0.95, worth)
    assert found.low is None or found.low in values
    assert found.high is None or found.high in values
    assert found.needs * worth >= 72 * len(values)


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
def test_rates_of_held_means_and_found_differences(run_sd: float) -> None:
    """Simulated runs with a known sd between them; tests/studies/study_power.py has larger ones."""
    rounds = 60
    found_inside = held = 0
    for seed in range(rounds):
        first = measured(Random(f"{run_sd}:{seed}"), 3, run_sd, 40)
        low, high = interval(estimated(first["a"]), USUAL)[1:]
        held += low <= TRUTH["a"] <= high
        slower = estimated(first["slower by 20 %"][:1])
        found_inside += judge(slower, estimated(first["a"][:1]), USUAL).verdict.kind == DIFFERS
    assert held >= 0.88 * rounds  # .95 and what 60 rounds leave open
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


def drifting(rng: Random, runs: tuple[float, ...], blocks: int, truth: float, size: int = 1) -> list[Estimate]:
    """Two cells that share a drift, the first ``truth`` times as slow; the trials of a block share its state."""
    one: list[float] = []
    other: list[float] = []
    for run_s in runs:
        state = rng.gauss(0, 0.3)
        for _ in range(blocks):
            state = 0.8 * state + rng.gauss(0, 0.2)
            for cell, mean_s in (one, run_s * truth), (other, run_s):
                block_s = mean_s * math.exp(state + rng.gauss(0, 0.06))
                cell += [block_s * math.exp(rng.gauss(0, 0.02)) for _ in range(size)]
    origins = [(RunKey("r", at // size // blocks), at // size % blocks) for at in range(len(one))]
    return [estimate(cell, [1] * len(cell), origins) for cell in (one, other)]


def test_only_equal_repetitions_are_paired_and_with_a_given_sd_none_of_one_block() -> None:
    docker, nspawn = drifting(Random(4), (9.6, 17.0, 20.4), 8, 2.7)
    assert paired_ratio(docker, nspawn, OF_DOCKER).low > 1.5
    more = nspawn._replace(parts=(*nspawn.parts, nspawn.parts[0]._replace(run=RunKey("r", 9), value=99.0)))
    assert paired_ratio(docker, more, OF_DOCKER) is None
    assert paired_ratio(*drifting(Random(4), (9.6, 17.0, 20.4), 1, 2.7), WITHIN_ONLY) is None


def test_a_drift_that_both_share_cancels_and_what_has_no_logarithm_has_no_interval() -> None:
    rng = Random(1)
    drift = [math.exp(rng.gauss(0, 1)) for _ in range(20)]
    found = ratio(estimated([[3 * one for one in drift]]), estimated([drift]), OF_DOCKER)
    assert found == pytest.approx((3, 3, 3))
    one, other = estimated([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), estimated([[1.0, 2.0, 3.0]] * 2)
    assert paired_ratio(one, other, OF_DOCKER) is None


def test_two_repetitions_whose_ratios_differ_decide_by_students_t_of_two() -> None:
    """Each repetition alone is sure, and one says the contrary of the other."""
    noise = [1.0, 1.01, 0.99, 1.0] * 5
    one = estimated([[1.3 * each for each in noise], [0.9 * each for each in noise[1:] + noise[:1]]])
    other = estimated([noise, noise])
    assert judge(one, other, OF_DOCKER).verdict.kind == TIE
    assert judge(one, other, WITHIN_ONLY).verdict.kind == DIFFERS, "an sd that is given stands in for what runs show"


@pytest.mark.parametrize(("runs", "blocks", "size"), [(1, 15, 1), (2, 15, 1), (3, 15, 1), (1, 1, 16), (3, 2, 16)])
def test_equal_cells_are_said_to_differ_in_one_of_twenty(runs: int, blocks: int, size: int) -> None:
    """The seeded A/A study, small. Blocks of 16 taken as 16 pairs of trials gave .86 and .08."""
    rounds = 150
    false = planted = 0
    for seed in range(rounds):
        rng = Random(f"{runs}:{seed}")
        level_s = tuple(math.exp(rng.gauss(0, 0.3)) for _ in range(runs))
        false += judge(*drifting(rng, level_s, blocks, 1.0, size), OF_DOCKER).verdict.kind == DIFFERS
        planted += judge(*drifting(rng, level_s, blocks, 1.5, size), OF_DOCKER).verdict.kind == DIFFERS
    assert false <= 0.06 * rounds
    assert planted >= 0.9 * rounds
