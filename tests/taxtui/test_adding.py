"""What CONTRIBUTING.md says of adding things, done in a copy of the packages: nothing else has to be touched."""

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

    def into(self, path: str, table: str, last: str, entry: str) -> None:
        """A new entry, behind ``last`` in the one line that begins a table."""
        lines = (self.root / path).read_text().splitlines()
        [place] = [number for number, line in enumerate(lines) if line.startswith(table)]
        assert last in lines[place]
        lines[place] = lines[place].replace(last, f"{last}, {entry}")
        (self.root / path).write_text("\n".join(lines) + "\n")
        self.touched.add(path)

    def edited_lines(self, path: str) -> int:
        """How many lines of a file are not as they were, or new."""
        was, now = ((root / path).read_text().splitlines() for root in (CHECKOUT, self.root))
        return sum(line.startswith("+ ") for line in difflib.ndiff(was, now))

    def tell(self, code: str, place: Path) -> Any:
        """What ``code`` prints as JSON, with the copy's packages."""
        variables = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
        argv = [sys.executable, "-c", f"import json\n{code}"]
        done = subprocess.run(argv, cwd=place, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    (tmp_path / "copy").mkdir()
    return Copy(tmp_path / "copy")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "recordings").mkdir()
    return tmp_path


ASKED: Final = """
from click.testing import CliRunner
from taxtui.cli import app
def said(*words):
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout
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
        '    Format("json"',
        '    Format("tabs", "Tabs", "for a pipe", False, "taxtui.report.formats.tab_rows"),',
    )
    assert len(copy.touched) == 2
    assert copy.edited_lines("taxtui/report/formats/__init__.py") == 1
    told = copy.tell(
        ASKED
        + """
name, scale = "recordings/small.msgpack", ("--trajectories", "10", "--workers", "2")
others = "recordings/short.msgpack", "recordings/run.msgpack"
commands = {
    "project": (name, *scale), "report": (name,), "compare": others, "doctor": (),
}
from taxtui.report.formats import FORMATS, Report
print(json.dumps({
    "choices": ["|tabs|" in said(command, "--help") for command in commands],
    "shown": [said(command, *words, "--format", "tabs") for command, words in commands.items()],
    "copied": [one.title for one in FORMATS if one.tells(Report(list, list))],
}))
""",
        place,
    )
    assert told["choices"] == [True] * 4
    assert all("\t" in text for text in told["shown"])
    assert "Tabs" in told["copied"]


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
    told = copy.tell(
        ASKED
        + """
said("import", "logs", "-o", "laps.msgpack")
print(json.dumps({"refused": CliRunner().invoke(app, ["import", "lap", "logs", "-o", "x"]).exception.fix,
    "row": json.loads(said("report", "laps.msgpack", "--format", "json"))[0]}))
""",
        place,
    )
    assert told["refused"] == "did you mean 'laps'?"
    assert (told["row"]["tier"], told["row"]["trials"]) == ("laps", 2)
    assert told["row"]["mean_ns"]["unsplit"] == 2 * 10**9


RAMP: Final = '''class Ramp(Arrival, frozen=True, tag="ramp"):
    """Each trial waits a step longer than the one before."""

    step_ns: int
    example: ClassVar[str] = "2ms"
    asks: ClassVar[str] = "by"

    @classmethod
    def of(cls, argument: str, folder: Path) -> Self:
        """As ``Arrival.of``: the step."""
        return cls(step_ns=parse_duration_ns(argument))

    def __str__(self) -> str:
        """As ``Arrival.__str__``."""
        return f"ramp:{self.step_ns / 1e6:g}ms"

    def starts_ns(self, trials: int, source: Random) -> Sequence[int]:
        """As ``Arrival.starts_ns``."""
        return [self.step_ns * trial * (trial + 1) // 2 for trial in range(trials)]

    def wall_ns(self, trials: int, concurrency: int, trial_ns: float) -> float:
        """As ``Arrival.wall_ns``."""
        return 7.0


'''


def test_an_arrival_is_one_class(copy: Copy, place: Path) -> None:
    path = "taxtui/plan/arrivals.py"
    copy.line(path, "KINDS:", RAMP)
    copy.into(path, "KINDS:", "Open", "Ramp")
    assert len(copy.touched) == 1
    assert copy.edited_lines(path) == len(RAMP.splitlines()) + 1
    told = copy.tell(
        ASKED
        + """
import asyncio
import msgspec
from taxtui.commands.run import _plan
from taxtui.plan import arrivals
from taxtui.plan.spec import Plan
from costmodel.recording.events import Cell, TrialStarted
from costmodel.recording.follower import read_events
from taxtui.tui.app import TaxtuiApp
from taxtui.report.plan_time import _wall_ns

said(*"run -s local:isolation=plain -t T0 -n 1 --mode exec --trials 3 --warmup 0 --concurrency 3".split(),
    *"--arrival ramp:3ms -o ramp.msgpack".split())
cells, starts = [], []
def take(event):
    if isinstance(event, Cell):
        cells.append(event.arrival)
    if isinstance(event, TrialStarted):
        starts.append(event.scheduled_ns)
from pathlib import Path
read_events(Path("ramp.msgpack"), take)

async def answers(refs):
    return {}

async def setup():
    tui = TaxtuiApp(None, answers)
    async with tui.run_test(size=(80, 24)) as pilot:
        await tui.screen._whole.wait()
        tui.screen.query_one("#arrival").value = "ramp:2ms"
        await pilot.pause()
        command = tui.screen.choices.command()
        plan = tui.screen.choices.plan()
        return command, msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan, _wall_ns(plan.cells[0], 1.0)

command, same, wall_ns = asyncio.run(setup())
print(json.dumps({
    "help": "| ramp:2ms" in said("run", "--help"), "cells": cells, "starts": starts, "command": command,
    "same": same, "wall_ns": wall_ns,
}))
""",
        place,
    )
    assert told["help"]
    assert told["cells"] == ["ramp:3ms"]
    first, second, third = sorted(told["starts"])
    assert (second - first, third - second) == (3_000_000, 6_000_000)
    assert " --arrival ramp:2ms " in told["command"]
    assert told["same"], "the plan comes back from JSON"
    assert told["wall_ns"] == 1 + 7


NOTES: Final = '''"""Notes."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from taxtui.tui import actions
from taxtui.tui.numbered_screen import NumberedScreen


class NotesScreen(NumberedScreen):
    """What one has noted."""

    scope = "notes"
    BINDINGS: ClassVar = [*actions.bindings("notes")]

    def contents(self) -> ComposeResult:
        """A note."""
        yield Static("noted", id="note")
'''


def test_a_screen_is_one_folder_and_one_line(copy: Copy, place: Path) -> None:
    copy.new("taxtui/tui/notes/__init__.py")
    copy.new("taxtui/tui/notes/screen.py", NOTES)
    copy.new("taxtui/tui/notes/screen.tcss", "#note { height: 7; }\n")
    path = "taxtui/tui/actions.py"
    copy.line(
        path, '    NumberedTab("5"', '    NumberedTab("6", "notes", "Notes", "What one has noted", 9, "NotesScreen"),'
    )
    outside = {each for each in copy.touched if not each.startswith("taxtui/tui/notes/")}
    assert outside == {path}
    assert copy.edited_lines(path) == 1
    told = copy.tell(
        """
import asyncio
from taxtui.tui.app import TaxtuiApp
from taxtui.tui.numbered_screen import NAMES, Tab

async def answers(refs):
    return {}

async def visit():
    tui = TaxtuiApp(None, answers)
    async with tui.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        palette = [command.title for command in tui.get_system_commands(tui.screen)]
        await pilot.press("6")
        await pilot.pause()
        tabs = {tab.mode: str(tab.render()) for tab in tui.screen.query(Tab)}
        height = tui.screen.query_one("#note").size.height
        await pilot.press("question_mark")
        await pilot.pause()
        return palette, tui.screen_stack[-2].scope, tabs, height, tui.export_screenshot().replace("&#160;", " ")

palette, scope, tabs, height, keys = asyncio.run(visit())
print(json.dumps({
    "palette": "Notes (6)" in palette, "scope": scope, "tabs": tabs, "height": height, "columns": NAMES,
    "help": "What one has noted" in keys,
}))
""",
        place,
    )
    assert told["palette"]
    assert told["help"]
    assert told["scope"] == "notes"
    assert told["tabs"]["notes"] == " 6 Notes "
    assert told["columns"] == 57 + len(" 6 Notes ")
    assert told["height"] == 7, "its own stylesheet"


ALIKE: Final = 'ALIKE: Final = Policy("alike", barrier=True, overlaps=False)\n'


def test_a_policy_is_one_line(copy: Copy, place: Path) -> None:
    path = "costmodel/training/policies.py"
    copy.line(path, "POLICIES:", ALIKE)
    copy.into(path, "POLICIES:", "ASYNC", "ALIKE")
    assert len(copy.touched) == 1
    assert copy.edited_lines(path) == len(ALIKE.splitlines()) + 1
    told = copy.tell(
        ASKED
        + """
from taxtui.tui.projection.form import fields
ask = ("project", "recordings/small.msgpack", "--trajectories", "100", "--workers", "4", "--batch", "10")
def rows(*more):
    return json.loads(said(*ask, "--train-seconds", "5", "--gpus", "2", "--format", "json", *more))
print(json.dumps({
    "choices": fields()["policy"].choices,
    "sync": rows()[0], "alike": rows("--set", "policy=alike")[0],
    "table": said(*ask, "--full", "--set", "policy=alike"),
}))
""",
        place,
    )
    assert "alike" in told["choices"]
    assert told["alike"]["wall_clock_hours"] == told["sync"]["wall_clock_hours"]
    assert "Training steps of 10, alike" in told["table"]
