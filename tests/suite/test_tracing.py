from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

import pytest
from coverage import Coverage

from tests.support import tracing
from tests.support.tracing import pause, traced


class Measured:
    """A measurement of coverage that says what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.running = True

    def start(self) -> None:
        self.told.append("start")
        self.running = True

    def stop(self) -> None:
        self.told.append("stop")
        self.running = False


@contextlib.contextmanager
def paused() -> Iterator[Measured]:
    """One was running. Undone before the test ends, as it is traced itself."""
    measured = Measured()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Coverage, "current", lambda: measured if measured.running else None)
        patch.setattr(tracing, "_measured", None)
        pause()
        yield measured


def test_what_computes_is_traced_no_longer_than_asked_for() -> None:
    with paused() as measured:
        with traced(0.01):
            assert measured.told == ["stop", "start"]
            while measured.running:
                sum(range(1000))
        assert measured.told == ["stop", "start", "stop"]


def test_what_waits_is_traced_to_its_end() -> None:
    with paused() as measured:
        with traced(60):
            time.sleep(0.05)
            assert measured.running
        assert measured.told == ["stop", "start", "stop"]


def test_where_coverage_is_really_measured_nothing_is_left_that_traces() -> None:
    if Coverage.current() is not None:
        assert sys.gettrace() is not None
    pause()
    assert sys.gettrace() is None
