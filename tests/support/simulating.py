"""Makespans that many tests ask for, simulated once in a process: seeded, they come out the same each time."""

from __future__ import annotations

from typing import Any

import pytest

from costmodel import wallclock
from costmodel.distribution import Distribution
from costmodel.makespan import Makespan, expected_makespan

_known: dict[object, Makespan] = {}


def simulate_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have projections remember what has been simulated for the same law, jobs and workers."""
    monkeypatch.setattr(wallclock, "expected_makespan", _remembered)


def _remembered(law: Distribution, *asked: int, **how: Any) -> Makespan:
    question = (*law.values, *law.counts, *asked, *how.items())
    if question not in _known:
        _known[question] = expected_makespan(law, *asked, **how)
    return _known[question]
