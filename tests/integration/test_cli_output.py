"""Standard output that cannot be written, a machine without room for us: one line, exit 1, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from taxtui import cli

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "arguments",
    [
        ["project", "published/essay.toml", "--trajectories", "10", "--workers", "2"],
        ["substrates", "--format", "json"],
        ["--help"],
    ],
)
def test_a_full_disk_behind_stdout(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "taxtui", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "taxtui: cannot write standard output: the disk is full\n"


@pytest.mark.parametrize(
    "error",
    [
        BlockingIOError(11, "Resource temporarily unavailable"),
        OSError(24, "Too many open files"),
        RuntimeError("can't start new thread"),
    ],
)
def test_a_machine_without_room(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app(**how: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"taxtui: {error}; raise ulimit -n or -u, or the control group's pids.max\n"


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError(5, "I/O error")])
def test_what_nobody_expected_stays_a_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def app(**how: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(type(error)):
        cli.main()
