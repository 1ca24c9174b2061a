"""Drift, neighbours that correlate, a first trial that differs, two modes: found where they are, with their size."""

from __future__ import annotations

from random import Random

import pytest

from costmodel.statistics.stability import Stability, stability


def noise(seed: int, count: int = 100) -> list[float]:
    rng = Random(seed)
    return [rng.gauss(10, 0.5) for _ in range(count)]


def test_independent_trials_show_nothing() -> None:
    found = [name for seed in range(100) for name, what in stability([noise(seed)])._asdict().items() if what]
    assert len(found) <= 8  # four tests of about 1 %; two names go with one of them


def test_too_few_trials_show_nothing() -> None:
    assert stability([[1.0, 2.0, 3.0]]) == Stability()
    assert stability([[0.0] * 50]) == Stability()
    assert stability([[2.0] * 50]) == Stability()


def test_drift_has_the_size_of_a_whole_run() -> None:
    drifting = [value * (0.9 + 0.2 * index / 100) for index, value in enumerate(noise(1))]
    assert stability([drifting]).drift == pytest.approx(0.2, abs=0.04)


def test_neighbours() -> None:
    rng = Random(3)
    state, values = 0.0, []
    for _ in range(300):
        state = 0.7 * state + rng.gauss(0, 0.5)
        values.append(10 + state)
    found = stability([values])
    assert found.correlation == pytest.approx(0.7, abs=0.15)
    assert found.worth < 0.4


def test_the_first_trial_of_most_runs() -> None:
    cold = [[15.0, *noise(seed, 30)] for seed in range(3)]
    assert stability(cold).first == pytest.approx(0.5, abs=0.05)
    assert stability([cold[0], noise(7, 30), noise(8, 30)]).first is None


def test_two_modes() -> None:
    rng = Random(4)
    values = [rng.gauss(30 if rng.random() < 0.2 else 10, 0.5) for _ in range(200)]
    modes = stability([values]).modes
    assert modes.share == pytest.approx(0.2, abs=0.06)
    assert modes.ratio == pytest.approx(3, abs=0.1)
