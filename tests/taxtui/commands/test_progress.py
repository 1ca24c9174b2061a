"""Progress of a computation, and warnings about a busy machine: printed for people, in a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import select
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from taxtui.cli import app
from taxtui.commands import decide, progress, project, report
from taxtui.commands.run_output import RunOutput
from taxtui.runner.run_control import Progress
from tests.support.cost_model.costmodel_files import cell, trial, write


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Make standard error a terminal; yield the descriptor to read from. A fixture would lose to pytest's capture."""
    reader, writer = pty.openpty()
    os.set_blocking(reader, False)
    with open(writer, "w", encoding="utf-8") as stderr, monkeypatch.context() as patch:  # noqa: PTH123 - a descriptor
        patch.setattr("sys.stderr", stderr)
        patch.setattr(progress, "INTERVAL_S", 0.01)
        yield reader
    os.close(reader)


def read(descriptor: int) -> str:
    ready, _, _ = select.select([descriptor], [], [], 60)
    assert ready, "nothing was written"
    return os.read(descriptor, 10_000).decode()


def test_a_line_is_written_and_erased_even_by_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as descriptor:
        with pytest.raises(KeyboardInterrupt), progress.progress("simulating") as report_share:  # noqa: PT012  # reads too
            report_share(0.4)
            text = read(descriptor)
            raise KeyboardInterrupt
        assert text.startswith("\rsimulating … 40 %, 0 s")
        while not text.endswith(" \r"):
            text += read(descriptor)


@pytest.mark.parametrize(
    ("module", "command", "activities"),
    [
        (project, "project a.msgpack --trajectories 9 --workers 3", ["projecting"]),
        (project, "project a.msgpack --trajectories 64 --workers 8 --batch 16 --think 1s", ["simulating"]),
        (report, "report a.msgpack --html a.html", ["drawing the page"]),
        (
            decide,
            "decide a.msgpack --from docker --to daytona --trajectories 9 --workers 3 --think 1s --quick",
            ["simulating docker and daytona", "simulating the difference", "looking for decisive inputs"],
        ),
    ],
)
def test_slow_commands_show_their_progress(
    module: ModuleType, command: str, activities: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    @contextlib.contextmanager
    def noted(activity: str) -> Iterator[None]:
        shown.append(activity)
        yield

    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.msgpack", [trial(n) for n in range(8)], cell(tier="T1"))
    monkeypatch.setattr(module, "progress", noted)
    result = CliRunner().invoke(app, command.split())
    assert shown == activities, result.output


@pytest.mark.parametrize(("kind", "controlled", "count"), [("plain", False, 1), ("none", False, 1), ("plain", True, 0)])
def test_people_read_the_warning_once(
    kind: str, controlled: bool, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    output = RunOutput(kind, None, controlled=controlled, load="this machine is busy")
    for _ in range(2):
        output.show(Progress(2))
    output.end()
    assert capsys.readouterr().err.count("this machine is busy") == count
