"""Recipes of CONTRIBUTING.md in a copy of the packages: a format and a reader of logs."""

from __future__ import annotations

import difflib
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


class Copy:
    """The packages, to be added to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.touched: set[str] = set()
        for package in ("taxtui", "costmodel"):
            shutil.copytree(CHECKOUT / package, root / package)
        for data in ("scenarios", "recordings"):
            (root / data).symlink_to(CHECKOUT / data)

    def new(self, path: str, text: str = "") -> None:
        """A new file."""
        assert not (self.root / path).exists()
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)
        self.touched.add(path)

    def line(self, path: str, before: str, text: str) -> None:
        """A new line, or several, above the only line that is ``before``, or begins with it."""
        lines = (self.root / path).read_text().splitlines()
        [place] = [number for number, line in enumerate(lines) if line.startswith(before)]
        (self.root / path).write_text("\n".join([*lines[:place], *text.splitlines(), *lines[place:]]) + "\n")
        self.touched.add(path)

    def edited_lines(self, path: str) -> int:
        """How many lines of a file are not as they were, or new."""
        was, now = ((root / path).read_text().splitlines() for root in (CHECKOUT, self.root))
        return sum(line.startswith("+ ") for line in difflib.ndiff(was, now))

    def evaluate(self, code: str, place: Path) -> Any:
        """Return the JSON that ``code`` prints with the packages of the copy."""
        variables = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
        argv = [sys.executable, "-c", f"import json\n{code}"]
        result = subprocess.run(argv, cwd=place, env=variables, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    (tmp_path / "copy").mkdir()
    return Copy(tmp_path / "copy")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "recordings").mkdir()
    return tmp_path


COMMANDS: Final = """
from click.testing import CliRunner
from taxtui.cli import app
def output(*words):
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout
"""


TABS: Final = '''"""The records, a line each."""

from taxtui.report.formats import Report


def render(report: Report) -> str:
    """The first keys of each."""
    return "\\n".join("\\t".join(map(str, list(record.items())[:2])) for record in report.records())
'''


def test_a_report_format_is_one_file_and_one_line(copy: Copy, place: Path) -> None:
    copy.new("taxtui/report/formats/tab_rows.py", TABS)
    copy.line(
        "taxtui/report/formats/__init__.py",
        '    "json"',
        '    "tabs": Format(False, "taxtui.report.formats.tab_rows"),',
    )
    assert len(copy.touched) == 2
    assert copy.edited_lines("taxtui/report/formats/__init__.py") == 1
    facts = copy.evaluate(
        COMMANDS
        + """
name, scale = "recordings/small.msgpack", ("--trajectories", "10", "--workers", "2")
others = "recordings/short.msgpack", "recordings/run.msgpack"
commands = {
    "project": (name, *scale), "report": (name,), "compare": others, "doctor": (),
}
print(json.dumps({
    "choices": ["|tabs|" in output(command, "--help") for command in commands],
    "shown": [output(command, *words, "--format", "tabs") for command, words in commands.items()],
}))
""",
        place,
    )
    assert facts["choices"] == [True] * 4
    assert all("\t" in text for text in facts["shown"])


LAPS: Final = '''"""Stop watches."""

from taxtui.importers.files import lines, walk
from taxtui.importers.protocol import ImportedTrial, Quantity
from taxtui.importers.timeline import Timeline
from taxtui.importers.values import duration_ns


class LapsReader:
    """A trial a line: seconds of its commands."""

    name = "laps"
    summary = "lines of seconds"
    takes_map = False

    def files(self, folder):
        """As the protocol has it."""
        return walk(folder, lambda name: name.endswith(".laps"))

    def recognises(self, path, head):
        """As the protocol has it."""
        return head.startswith(b"laps")

    def trials(self, path, asked):
        """As the protocol has it."""
        for number, line in lines(path):
            timeline = Timeline(0)
            timeline.lacks(Quantity.RUN, "a watch has one button")
            for word in line.split()[1:]:
                timeline.next_action(duration_ns(float(word)) or 0)
            yield ImportedTrial(**timeline.times(), dated=False, resolution_ns=10_000_000)
'''


def test_a_reader_of_logs_is_one_file_and_one_entry_point(copy: Copy, place: Path) -> None:
    copy.new("taxtui/importers/laps.py", LAPS)
    installed = copy.root / "mine-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[taxtui.importers]\nlaps = taxtui.importers.laps:LapsReader\n")
    assert len(copy.touched) == 1
    (place / "logs").mkdir()
    (place / "logs" / "a.laps").write_text("laps 1.5 0.5\nlaps 2\n")
    facts = copy.evaluate(
        COMMANDS
        + """
output("import", "logs", "-o", "laps.msgpack")
print(json.dumps({"refused": CliRunner().invoke(app, ["import", "lap", "logs", "-o", "x"]).exception.fix,
    "row": json.loads(output("report", "laps.msgpack", "--format", "json"))[0]}))
""",
        place,
    )
    assert facts["refused"] == "did you mean 'laps'?"
    assert (facts["row"]["tier"], facts["row"]["trials"]) == ("laps", 2)
    assert facts["row"]["mean_ns"]["unsplit"] == 2 * 10**9
