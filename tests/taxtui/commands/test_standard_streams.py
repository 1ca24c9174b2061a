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
@pytest.mark.parametrize(
    "arguments",
    [
        ["project", "published/essay.toml", "--trajectories", "10", "--workers", "2"],
        ["doctor", "--format", "json"],
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
SMALL = ["small.msgpack", "--trajectories", "100", "--workers", "5"]


@pytest.mark.parametrize(
    "command", [["report", "small.msgpack"], ["project", *SMALL], ["compare", "short.msgpack", "run.msgpack"]]
)
def test_a_locale_that_lacks_a_character(command: list[str]) -> None:
    result = taxtui(*command, env=LATIN)
    assert (result.returncode, result.stderr) == (0, b"")
    assert "?" in result.stdout.decode("latin-1")


def test_files_are_utf8_in_every_locale(tmp_path: Path) -> None:
    words = [*SMALL, "--from", "local", "--to", "daytona", "--compose", "daytona", "--tier", "T0", "--mode", "exec"]
    words += ["--think", "1s", "--quick", "-o", str(tmp_path / "memo.md")]
    result = taxtui("decide", *words, env=LATIN)
    assert b"Traceback" not in result.stderr
    assert "…" in (tmp_path / "memo.md").read_text(encoding="utf-8")
    result = taxtui("\u4e00", env=LATIN)
    assert (result.returncode, result.stderr.count(b"\n")) == (2, 1)


@pytest.mark.parametrize(
    "command", ["report FILE --format json", "project FILE --trajectories 9 --workers 3 --format json"]
)
def test_json_of_a_file_whose_name_is_no_utf8(command: str, tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff.msgpack")
    write(tmp_path / name, [trial(n) for n in range(8)], cell())
    words = [name if word == "FILE" else word for word in command.split()]
    result = taxtui(*words, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    assert json.loads(result.stdout)


@pytest.mark.parametrize("options", [["-s", b"l\xff"], ["--acquire", b"l\xff"], ["-s", b"local:fixtures=/x\xff"]])
def test_a_run_refuses_a_name_that_is_no_utf8(options: list[str | bytes], tmp_path: Path) -> None:
    result = taxtui("run", "-t", "T0", "-n", "1", *options, cwd=tmp_path)
    assert result.returncode == 2
    assert b"is no UTF-8" in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert not list(tmp_path.iterdir())
