"""Recipes of CONTRIBUTING.md in a copy of the packages: a report format and a reader of logs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import taxtui

pytestmark = [pytest.mark.slow, pytest.mark.processes]
CHECKOUT: Final = Path(taxtui.__file__).parent.parent
OUTPUT: Final = """
import json
from click.testing import CliRunner
from taxtui.cli import app
def output(*words):
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in ("taxtui", "costmodel"):
        shutil.copytree(CHECKOUT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for data in ("scenarios", "recordings"):
        (tmp_path / data).symlink_to(CHECKOUT / data)
    return tmp_path


def evaluate(copy: Path, code: str) -> Any:
    """Return the JSON that ``code`` prints with the packages of the copy."""
    variables = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-c", OUTPUT + code]
    result = subprocess.run(argv, cwd=copy, env=variables, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


TABS: Final = '''
def render(report):
    """Return the first keys of each record."""
    return "\\n".join("\\t".join(map(str, list(record.items())[:2])) for record in report.records())
'''


def test_a_report_format_is_one_file_and_one_line(copy: Path) -> None:
    formats = copy / "taxtui" / "report" / "formats"
    (formats / "tab_rows.py").write_text(TABS)
    text = (formats / "__init__.py").read_text()
    line = '    "tabs": Format(False, "taxtui.report.formats.tab_rows"),\n'
    (formats / "__init__.py").write_text(text.replace('    "json": Format(', f'{line}    "json": Format(', 1))
    commands = [
        ("project", "recordings/small.msgpack", "--trajectories", "10", "--workers", "2"),
        ("report", "recordings/small.msgpack"),
        ("compare", "recordings/short.msgpack", "recordings/run.msgpack"),
        ("doctor",),
    ]
    shown = evaluate(copy, f"print(json.dumps([output(*words, '--format', 'tabs') for words in {commands}]))")
    assert all("\t" in text for text in shown)


LAPS: Final = '''
from taxtui.importers.files import lines, walk
from taxtui.importers.trial import ImportedTrial, Quantity
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import duration_ns


class LapsReader:
    """A trial a line: seconds of its commands."""

    name = "laps"

    def files(self, folder):
        return walk(folder, lambda name: name.endswith(".laps"))

    def recognises(self, path, head):
        return head.startswith(b"laps")

    def trials(self, path):
        for number, line in lines(path):
            timeline = Timeline(0)
            timeline.lacks(Quantity.RUN, "a watch has one button")
            for word in line.split()[1:]:
                timeline.append("action", duration_ns(float(word)) or 0)
            yield ImportedTrial(**timeline.times(), dated=False, resolution_ns=10_000_000)
'''


def test_a_reader_of_logs_is_one_file_and_one_entry_point(copy: Path) -> None:
    (copy / "taxtui" / "importers" / "formats" / "laps.py").write_text(LAPS)
    installed = copy / "mine-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[taxtui.importers]\nlaps = taxtui.importers.formats.laps:LapsReader\n")
    (copy / "logs").mkdir()
    (copy / "logs" / "a.laps").write_text("laps 1.5 0.5\nlaps 2\n")
    code = "output('import', 'logs', '-o', 'l.msgpack'); rows = output('report', 'l.msgpack', '--format', 'json')"
    [row] = evaluate(copy, f"{code}; print(json.dumps(json.loads(rows)))")
    assert (row["tier"], row["trials"]) == ("laps", 2)
    assert row["mean_ns"]["unsplit"] == 2 * 10**9
