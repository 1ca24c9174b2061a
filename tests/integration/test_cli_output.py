"""Standard output that cannot be written: one line, exit 1, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
