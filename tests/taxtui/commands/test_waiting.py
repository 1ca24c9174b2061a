"""A command that computes says so: on a terminal, on a line that goes away again."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from taxtui.cli import app
from taxtui.commands import decide, project, report, waiting
from tests.support.cost_model.costmodel_files import cell, trial, write


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as stderr; the descriptor that reads what is written to it.

    Not a fixture: after one pytest puts its own stderr in place.
    """
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    with open(theirs, "w", encoding="utf-8") as stderr, monkeypatch.context() as patch:  # noqa: PTH123 - a descriptor
        patch.setattr("sys.stderr", stderr)
        patch.setattr(waiting, "EVERY_S", 0.01)
        yield ours
    os.close(ours)


def read(ours: int) -> str:
    """What has been written by now, at least something."""
    ready, _, _ = select.select([ours], [], [], 60)
    assert ready, "nothing was written"
    return os.read(ours, 10_000).decode()


LINE = "simulating … 0 s"


def test_a_line_is_written_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as ours:
        with waiting.waiting("simulating"):
            shown = read(ours)
        assert shown.startswith(f"\r{LINE}")
        while not shown.endswith(" \r"):
            shown += read(ours)


def test_it_is_erased_after_ctrl_c_and_the_timer_before_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pytest's own timer does, which ends a test that hangs."""
    rang: list[int] = []

    def interrupted(ours: int) -> None:
        with waiting.waiting("simulating"):
            read(ours)
            raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, lambda number, _: rang.append(number))
    timer = signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with terminal(monkeypatch) as ours:
            with pytest.raises(KeyboardInterrupt):
                interrupted(ours)
            shown = ""
            while not shown.endswith(" \r"):
                shown += read(ours)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
        signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)
    assert rang == [signal.SIGALRM]


def test_nothing_is_written_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    before = signal.getsignal(signal.SIGALRM)
    with waiting.waiting("simulating"):
        assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.parametrize(
    ("module", "command", "names"),
    [
        (project, "project a.msgpack --trajectories 9 --workers 3", ["projecting"]),
        (
            project,
            "project a.msgpack --trajectories 64 --workers 8 --prompts 4 --group-size 4 --think 1s",
            ["simulating"],
        ),
        (
            project,
            "project a.msgpack --trajectories 9 --workers 3 --html a.html",
            ["simulating and drawing the page"],
        ),
        (report, "report a.msgpack --html a.html", ["drawing the page"]),
        (
            decide,
            "decide a.msgpack --from docker --to daytona --trajectories 9 --workers 3 --think 1s",
            [
                "simulating docker",
                "simulating daytona",
                "simulating what moving saves",
                "looking for what would turn it",
            ],
        ),
    ],
)
def test_commands_that_compute_say_so(
    module: ModuleType, command: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doing: list[str] = []

    @contextlib.contextmanager
    def noted(name: str) -> Iterator[None]:
        doing.append(name)
        yield

    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.msgpack", [trial(n) for n in range(8)], cell(tier="T1"))
    monkeypatch.setattr(module, "waiting", noted)
    result = CliRunner().invoke(app, command.split())
    assert doing == names, result.output
