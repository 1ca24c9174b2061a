"""The load of the machine: a warning where it is high, and a wait with a limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taxtui.plan.crowding import cores
from taxtui.runner import machine_load


def set_loads(monkeypatch: pytest.MonkeyPatch, *per_core: float) -> Iterator[float]:
    """Set the loads that the machine reports in turn; return the loads that remain."""
    loads = iter([load * cores() for load in per_core])
    monkeypatch.setattr("os.getloadavg", lambda: (next(loads), 0.0, 0.0))
    return loads


def test_only_a_high_load_is_a_warning() -> None:
    assert machine_load.words(None) == machine_load.words(machine_load.LOAD_LIMIT) == ""
    assert machine_load.words(4.55).startswith("this machine is busy: its load is 4.5 per core (limit 0.5)")


def test_a_wait_ends_with_a_low_load_or_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = set_loads(monkeypatch, 3, 2, 0.1, 9)
    monkeypatch.setattr("time.sleep", lambda _: None)
    lines: list[str] = []
    machine_load.wait(1e6, lines.append)
    assert lines == ["waiting until the load is at most 0.5 per core, now 3.0"]
    assert next(loads) == 9 * cores()
    loads = set_loads(monkeypatch, 3, 2)
    machine_load.wait(0, lambda _: None)
    assert next(loads) == 2 * cores()


def test_a_machine_without_a_load_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr("os.getloadavg", unknown)
    assert machine_load.load_per_core() is None
    machine_load.wait(60, pytest.fail)
