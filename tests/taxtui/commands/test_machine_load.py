"""A busy machine is named in one line before a measurement begins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from taxtui.cli import app
from taxtui.commands.run_shown import Shown
from taxtui.plan.crowding import cores
from taxtui.runner import machine_load
from taxtui.runner.progress import Progress


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
    assert said == ["waiting until the load is at most 0.5 per core, now 3.0"]
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


@pytest.mark.parametrize(
    ("kind", "controlled", "said"), [("plain", False, 1), ("none", False, 1), ("json", False, 0), ("plain", True, 0)]
)
def test_people_are_told_once_when_the_run_has_begun(
    kind: str, controlled: bool, said: int, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = Shown(kind, None, controlled=controlled, load=machine_load.words(8.0))
    for _ in range(2):
        shown.show(Progress(2))
    shown.end(Progress(2), "finished")
    assert capsys.readouterr().err.count("this machine is busy: its load is 8.0 per core") == said


def test_a_run_that_is_refused_says_nothing_of_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (8.0 * cores(), 0.0, 0.0))
    monkeypatch.setattr("taxtui.commands.run._build_fixtures", lambda _: None)

    def refuse(*_: object) -> None:
        raise SystemExit(7)

    monkeypatch.setattr("taxtui.commands.run._run", refuse)
    done = CliRunner().invoke(app, ["run", "-s", "local", "-t", "T0"])
    assert (done.exit_code, done.stderr) == (7, "")
