"""Standard streams: full disks, locales, names that are no UTF-8, Ctrl-C at any moment, and progress."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from taxtui import cli
from taxtui.cli import app
from taxtui.commands import decide, progress, project, report
from taxtui.commands.run_output import RunOutput
from taxtui.runner.run_control import Progress
from tests.support.cost_model.costmodel_files import cell, trial, write

pytestmark = pytest.mark.processes
FULL = Path("/dev/full")


def taxtui(*words: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "taxtui", *words], capture_output=True, check=False, **options)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["project essay --trajectories 10 --workers 2", "--help"])
def test_a_full_disk_behind_stdout(command: str) -> None:
    argv = [sys.executable, "-m", "taxtui", *command.split()]
    with FULL.open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "taxtui: cannot write standard output: No space left on device\n"


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), RuntimeError("can't start new thread")])
def test_a_machine_without_resources(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app(**how: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"taxtui: {error}; raise ulimit -n or -u, or the control group's pids.max\n"
    error = RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main()


LATIN = {**os.environ, "PYTHONIOENCODING": "latin-1"}


def test_a_locale_that_lacks_a_character_has_files_in_utf8(tmp_path: Path) -> None:
    result = taxtui("report", "small.msgpack", env=LATIN)
    assert (result.returncode, result.stderr) == (0, b"")
    assert "?" in result.stdout.decode("latin-1")
    words = ["small.msgpack", "--trajectories", "100", "--workers", "5", "--from", "local", "--to", "daytona"]
    words += ["--compose", "daytona", "--tier", "T0", "--mode", "exec", "--think", "1s", "--quick"]
    result = taxtui("decide", *words, "-o", str(tmp_path / "memo.md"), env=LATIN)
    assert b"Traceback" not in result.stderr
    assert "…" in (tmp_path / "memo.md").read_text(encoding="utf-8")
    result = taxtui("\u4e00", env=LATIN)
    assert (result.returncode, result.stderr.count(b"\n")) == (2, 1)


def test_a_name_that_is_no_utf8_is_read_and_never_recorded(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff.msgpack")
    write(tmp_path / name, [trial(n) for n in range(8)], cell())
    result = taxtui("report", name, "--format", "json", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    assert json.loads(result.stdout)
    result = taxtui("run", "-t", "T0", "-n", "1", "-s", b"local:fixtures=/x\xff", cwd=tmp_path)
    assert result.returncode == 2
    assert b"is no UTF-8" in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert len(list(tmp_path.iterdir())) == 1


STRUCK = """
import signal, sys

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

MODULE = sys.argv.pop(1)
sys.meta_path.insert(0, Strike())
from taxtui.__main__ import main
main()
"""
"""A command line that gets a SIGINT in the moment in which it imports a module."""


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("click", "--version"),
        ("taxtui.cli", "--version"),
        ("costmodel.analysis.project", "project a.msgpack --trajectories 5 --workers 5"),
        ("costmodel.analysis.decision", "decide a.msgpack --trajectories 5 --workers 5 --from docker --to local"),
        ("taxtui.workloads.repository", "tier from-repo ."),
        ("taxtui.substrates.local.substrate", "doctor -s local"),
        ("taxtui.runner.run", "run -s local -t T0 -n 1 --trials 1"),
    ],
)
def test_ctrl_c_is_one_line_and_130(module: str, command: str, tmp_path: Path) -> None:
    write(tmp_path / "a.msgpack", [trial(n) for n in range(4)], cell())
    argv = [sys.executable, "-c", STRUCK, module, *command.split()]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\ntaxtui: interrupted\n")


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Make standard error a terminal; yield the descriptor to read from. A fixture would lose to pytest's capture."""
    reader, writer = pty.openpty()
    os.set_blocking(reader, False)
    with open(writer, "w", encoding="utf-8") as stderr, monkeypatch.context() as patch:  # noqa: PTH123 - a descriptor
        patch.setattr("sys.stderr", stderr)
        patch.setattr(progress, "INTERVAL_S", 0.01)
        patch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
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
            text = ""
            while "\rsimulating … 40 %, 0 s" not in text:
                text += read(descriptor)
            raise KeyboardInterrupt
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


def test_closed_readers_closed_streams_and_refused_paths(tmp_path: Path) -> None:
    def script(text: str) -> int:
        return subprocess.run(["bash", "-o", "pipefail", "-c", text], cwd=tmp_path, check=False).returncode

    command = f'"{sys.executable}" -m taxtui'
    assert script(f"{command} compare small.msgpack run.msgpack --fail-above 1% | true") == 6
    assert script(f"{command} --help | true") == 0
    assert script(f"{command} report small.msgpack --html page.html <&- >&- 2>&-") == 0
    assert (tmp_path / "page.html").read_bytes()[:1] == b"<"
    result = taxtui("report", "x" * 300)
    assert (result.returncode, result.stderr.decode()) == (2, f"taxtui: cannot use {'x' * 300}: File name too long\n")
