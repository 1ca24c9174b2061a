"""Simulations that tests do not look at, or many ask for: coarse, or once in a process."""

from __future__ import annotations

import pytest

from costmodel import Precision
from costmodel.attribution import replications
from costmodel.projection import wall_clock
from costmodel.simulation import run
from costmodel.simulation.makespan import Draw, Makespan, expected_makespan
from costmodel.statistics.distribution import Distribution

_known: dict[object, Makespan] = {}


def simulate_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have projections remember what has been simulated for the same law, jobs and workers; steps are coarse."""
    monkeypatch.setattr(wall_clock, "expected_makespan", _remembered)
    attribute_coarsely(monkeypatch)


def _remembered(law: Distribution, jobs: int, workers: int, precision: Precision, draw: Draw | None = None) -> Makespan:
    question = (*law.values, *law.counts, jobs, workers, precision, draw is None)
    if question not in _known:
        _known[question] = expected_makespan(law, jobs, workers, precision, draw)
    return _known[question]


def attribute_coarsely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every run in steps attributed with as little as there is."""
    monkeypatch.setattr(replications, "ATTEMPTS", 1_000)


def run_coarsely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs that no closed form answers simulated with few attempts."""
    monkeypatch.setattr(run, "ATTEMPTS", 1_000)
