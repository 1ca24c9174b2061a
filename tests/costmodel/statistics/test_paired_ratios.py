"""Two cells of the same runs are compared by the logarithm of their ratio, in which drift of the machine cancels."""

from __future__ import annotations

import math
from random import Random

import pytest

from costmodel.statistics.repetitions import WITHIN_ONLY, Estimate, assumed
from costmodel.statistics.verdict import DIFFERS, TIE, UNKNOWN, judge, paired_log_ratio, ratio
from tests.support.cost_model.simulated_runs import estimated

USUAL = assumed("docker")
RUN_S = (9.6, 17.0, 20.4)
"""Mean times of three repetitions on a busy machine: the drift that made 2.8 times as slow a tie."""


def cells(rng: Random, runs: tuple[float, ...], blocks: int, truth: float, apart: float = 0.0) -> list[Estimate]:
    """Two cells that share a drift, the first ``truth`` times as slow; ``apart``: the sd of that between runs."""
    one: list[list[float]] = []
    other: list[list[float]] = []
    for run_s in runs:
        state, own = rng.gauss(0, 0.3), math.exp(rng.gauss(0, apart))
        one.append([])
        other.append([])
        for _ in range(blocks):
            state = 0.8 * state + rng.gauss(0, 0.2)
            one[-1].append(run_s * truth * own * math.exp(state + rng.gauss(0, 0.1)))
            other[-1].append(run_s * math.exp(state + rng.gauss(0, 0.1)))
    return [estimated(one), estimated(other)]


def test_what_is_slower_in_every_block_is_no_tie_however_the_machine_drifts() -> None:
    docker, nspawn = cells(Random(4), RUN_S, 8, 2.7, apart=0.1)
    found = ratio(docker, nspawn, USUAL)
    assert found.value == docker.value / nspawn.value
    assert found.low > 1.5
    assert found.high < 5
    judged = judge(docker, nspawn, USUAL)
    assert judged.verdict.kind == DIFFERS
    assert judged.value.low > 0, "the difference says what its ratio says"


def test_a_drift_that_both_share_cancels() -> None:
    rng = Random(1)
    drift = [math.exp(rng.gauss(0, 1)) for _ in range(20)]
    found = ratio(estimated([[3 * one for one in drift]]), estimated([drift]), USUAL)
    assert found == pytest.approx((3, 3, 3))


def test_which_one_comes_first_does_not_matter() -> None:
    one, other = cells(Random(2), (1.0, 2.0), 10, 1.5)
    there, back = ratio(one, other, USUAL), ratio(other, one, USUAL)
    assert there == pytest.approx((1 / back.value, 1 / back.high, 1 / back.low))


def test_two_repetitions_whose_ratios_differ_decide_by_students_t_of_two() -> None:
    """Each repetition alone is sure, and one says the contrary of the other."""
    noise = [1.0, 1.01, 0.99, 1.0] * 5
    one = estimated([[1.3 * each for each in noise], [0.9 * each for each in noise[1:] + noise[:1]]])
    other = estimated([noise, noise])
    assert judge(one, other, USUAL).verdict.kind == TIE
    assert judge(one, other, WITHIN_ONLY).verdict.kind == DIFFERS, "an sd that is given stands in for what runs show"


def test_what_has_no_logarithm_has_no_interval() -> None:
    one, other = estimated([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), estimated([[1.0, 2.0, 3.0]] * 2)
    assert paired_log_ratio(one, other, USUAL) is None
    assert judge(one, other, USUAL).verdict.kind == UNKNOWN
    few = estimated([[1.0], [2.0]])
    assert ratio(few, few, USUAL) == (1.0, None, None)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_equal_cells_are_said_to_differ_in_one_of_twenty(runs: int) -> None:
    """The seeded A/A study, small: 300 pairs. 1,000 pairs with 30 blocks gave .045, .024 and .017."""
    rounds = 300
    false = planted = 0
    for seed in range(rounds):
        rng = Random(f"{runs}:{seed}")
        level_s = tuple(math.exp(rng.gauss(0, 0.3)) for _ in range(runs))
        false += judge(*cells(rng, level_s, 15, 1.0), USUAL).verdict.kind == DIFFERS
        planted += judge(*cells(rng, level_s, 15, 1.5), USUAL).verdict.kind == DIFFERS
    assert false <= 0.08 * rounds  # .05 and two and a half standard errors of so few
    assert planted >= 0.9 * rounds
