"""A busy machine is named in one line before a measurement begins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from taxtui.cli import app
from taxtui.plan.crowding import cores
from taxtui.runner import machine_load


def loads(monkeypatch: pytest.MonkeyPatch, *per_core: float) -> Iterator[float]:
    """The machine's load is these in turn; what is left of them."""
    left = iter([load * cores() for load in per_core])
    monkeypatch.setattr("os.getloadavg", lambda: (next(left), 0.0, 0.0))
    return left


def test_only_a_high_load_is_said() -> None:
    assert machine_load.words(None) == machine_load.words(machine_load.LOAD_LIMIT) == ""
    assert machine_load.words(4.55).startswith("this machine is busy: its load is 4.5 per core (limit 0.5)")


def test_a_wait_ends_with_the_load_and_says_that_it_waits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    left = loads(monkeypatch, 3, 2, 0.1, 9)
    monkeypatch.setattr("time.sleep", lambda _: None)
    said: list[str] = []
    machine_load.wait(1e6, said.append)
    assert said == ["waiting until the load is at most 0.5 per core; it is 3.0"]
    assert next(left) == 9 * cores()


def test_a_wait_ends_with_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    left = loads(monkeypatch, 3, 2)
    machine_load.wait(0, lambda _: None)
    assert next(left) == 2 * cores()


def test_where_no_load_is_reported_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr("os.getloadavg", unknown)
    assert machine_load.load_per_core() is None
    machine_load.wait(60, pytest.fail)


@pytest.mark.parametrize(("progress", "said"), [("plain", 1), ("json", 0)])
def test_a_run_says_it_before_it_begins(monkeypatch: pytest.MonkeyPatch, progress: str, said: int) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (8.0 * cores(), 0.0, 0.0))
    monkeypatch.setattr("taxtui.commands.run._build_fixtures", lambda _: None)

    def begins(*_: object) -> None:
        raise SystemExit(7)

    monkeypatch.setattr("taxtui.commands.run._run", begins)
    done = CliRunner().invoke(app, ["run", "-s", "local", "-t", "T0", "--progress", progress])
    assert done.exit_code == 7
    assert done.stderr.count("this machine is busy: its load is 8.0 per core") == said
