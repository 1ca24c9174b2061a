from __future__ import annotations

import sys
import time

import pytest
from coverage import Coverage

from tests.support.tracing import traced


class Measured:
    """Measurements of coverage, one begun upon the other, that say what they were told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, running: int = 1) -> None:
        self.told: list[str] = []
        self.running = running
        monkeypatch.setattr(Coverage, "current", lambda: self if self.running else None)

    def start(self) -> None:
        self.told.append("start")
        self.running += 1

    def stop(self) -> None:
        self.told.append("stop")
        self.running -= 1


def test_what_computes_is_traced_no_longer_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured(monkeypatch)
    with traced(0.01):
        assert measured.told == []
        while not measured.told:
            sum(range(1000))
        assert measured.told == ["stop"]
    assert measured.told[-1] == "start"


def test_what_waits_is_traced_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured(monkeypatch)
    with traced(60):
        time.sleep(0.05)
        assert measured.told == []
    assert measured.told == ["stop", "start"]


def test_what_is_not_to_be_traced_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured(monkeypatch)
    with traced(0):
        assert measured.told == ["stop"]
    assert measured.told[-1] == "start"


def test_a_measurement_beneath_another_ends_as_well_and_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured(monkeypatch, running=2)
    with traced(60):
        pass
    assert measured.told == ["stop", "stop", "start"]


def test_where_coverage_is_really_measured_nothing_is_left_that_traces() -> None:
    with traced(0):
        assert sys.gettrace() is None
