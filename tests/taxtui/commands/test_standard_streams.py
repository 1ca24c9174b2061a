"""A full disk, a locale without a character, names that are no UTF-8, and a machine without resources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taxtui import cli
from tests.support.cost_model.costmodel_files import cell, trial, write

pytestmark = pytest.mark.processes

FULL = Path("/dev/full")


def taxtui(*words: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "taxtui", *words], capture_output=True, check=False, **options)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["project essay --trajectories 10 --workers 2", "--help"])
def test_a_full_disk_behind_stdout(command: str) -> None:
    with FULL.open("w") as full:
        argv = [sys.executable, "-m", "taxtui", *command.split()]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "taxtui: cannot write standard output: the disk is full\n"


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


def test_a_locale_that_lacks_a_character() -> None:
    result = taxtui("report", "small.msgpack", env=LATIN)
    assert (result.returncode, result.stderr) == (0, b"")
    assert "?" in result.stdout.decode("latin-1")


def test_files_are_utf8_in_every_locale(tmp_path: Path) -> None:
    words = ["small.msgpack", "--trajectories", "100", "--workers", "5", "--from", "local", "--to", "daytona"]
    words += ["--compose", "daytona", "--tier", "T0", "--mode", "exec", "--think", "1s", "--quick"]
    result = taxtui("decide", *words, "-o", str(tmp_path / "memo.md"), env=LATIN)
    assert b"Traceback" not in result.stderr
    assert "…" in (tmp_path / "memo.md").read_text(encoding="utf-8")
    result = taxtui("\u4e00", env=LATIN)
    assert (result.returncode, result.stderr.count(b"\n")) == (2, 1)


def test_json_of_a_file_whose_name_is_no_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff.msgpack")
    write(tmp_path / name, [trial(n) for n in range(8)], cell())
    result = taxtui("report", name, "--format", "json", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    assert json.loads(result.stdout)


def test_a_run_refuses_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    result = taxtui("run", "-t", "T0", "-n", "1", "-s", b"local:fixtures=/x\xff", cwd=tmp_path)
    assert result.returncode == 2
    assert b"is no UTF-8" in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert not list(tmp_path.iterdir())
