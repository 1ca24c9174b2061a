"""Ctrl-C at any moment: one line and exit code 130, from the first import on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cost_model.costmodel_files import cell, trial, write

pytestmark = pytest.mark.processes

LINE = "\ntaxtui: interrupted\n"
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


def python(program: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *args], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("click", "--version"),
        ("taxtui.cli", "--version"),
        ("costmodel.analysis.project", "project a.msgpack --trajectories 5 --workers 5"),
        ("taxtui.report.page.content", "report a.msgpack --html a.html"),
        ("taxtui.report.page.content", "project a.msgpack --trajectories 5 --workers 5 --html a.html"),
        ("costmodel.analysis.decision", "decide a.msgpack --trajectories 5 --workers 5 --from docker --to local"),
        ("taxtui.report.measured.rows", "report a.msgpack --full"),
        ("taxtui.report.page.site", "site . -o out"),
        ("taxtui.workloads.repository", "tier from-repo ."),
        ("taxtui.substrates.local.substrate", "doctor -s local"),
        ("taxtui.runner.run", "run -s local -t T0 -n 1 --trials 1"),
    ],
)
def test_ctrl_c_is_one_line_and_130(module: str, command: str, tmp_path: Path) -> None:
    write(tmp_path / "a.msgpack", [trial(n) for n in range(4)], cell())
    done = python(STRUCK, module, *command.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", LINE)
