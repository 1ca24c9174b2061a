from __future__ import annotations

import time

import pytest
from coverage import Coverage

from tests.support.tracing import traced


class Measured:
    """A measurement of coverage that says what it was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[str] = []
        monkeypatch.setattr(Coverage, "current", lambda: self)

    def start(self) -> None:
        self.told.append("start")

    def stop(self) -> None:
        self.told.append("stop")


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
