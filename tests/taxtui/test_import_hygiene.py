"""What a command may import, read from ``sys.modules`` of a fresh interpreter: start-up time and layering at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import taxtui
from costmodel.recording.events import Clock, Header, RunFinished
from taxtui.recording.writer import Recorder

SDKS = {
    "aiohttp",
    "asyncssh",
    "boto3",
    "botocore",
    "daytona",
    "daytona_api_client_async",
    "daytona_toolbox_api_client_async",
    "docker",
    "kubernetes",
    "ray",
    "requests",
    "websockets",
}
SCREENS = {"plotext", "rich", "textual", "textual_plotext"}
TUI_MODULES = sorted(
    ".".join(path.with_suffix("").parts[-len(path.relative_to(root.parent.parent).parts) :])
    for root in [Path(taxtui.__file__).parent / "tui"]
    for path in root.rglob("*.py")
    if path.stem != "__init__"
)


def imported(code: str) -> set[str]:
    """The modules that a fresh interpreter has after ``code``."""
    report = "import sys\ntry:\n    CODE\nfinally:\n    import json; print('\\n' + json.dumps(sorted(sys.modules)))"
    argv = [sys.executable, "-c", report.replace("CODE", code)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def command_line(*args: str) -> set[str]:
    """The modules behind a whole ``taxtui`` command that ends with exit 0."""
    return imported(f"from taxtui.cli import app; app({list(args)!r}, standalone_mode=False)")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "r.msgpack"
    with Recorder(path) as recorder:
        for event in (Header("taxtui", 1, "r", {}, {}), Clock(0, 0, 0, ""), RunFinished("finished", {})):
            recorder.add(event)
    return path


def test_the_list_of_tui_modules_is_real() -> None:
    assert {"taxtui.tui.app", "taxtui.tui.live.screen"} <= set(TUI_MODULES)


def test_help_imports_nothing_heavy() -> None:
    modules = command_line("--help")
    assert packages(modules) & (SDKS | SCREENS | {"asyncio", "costmodel", "msgspec"}) == set()


def test_recordings_info_imports_neither_screens_nor_sdks(small: Path) -> None:
    modules = command_line("recordings", "info", str(small))
    assert "costmodel.recording.follower" in modules
    assert packages(modules) & (SDKS | SCREENS) == set()


def test_project_imports_neither_screens_nor_sdks() -> None:
    modules = command_line("project", "essay", "--trajectories", "1000", "--workers", "10")
    assert "costmodel.projection.measured_row" in modules
    assert not {name for name in modules if name.startswith("costmodel.attribution")}  # who asks for no steps
    assert packages(modules) & (SDKS | SCREENS) == set()
    assert not {name for name in modules if name.startswith(("taxtui.runner", "taxtui.substrates", "taxtui.tui"))}


def test_a_run_on_this_machine_imports_no_sdk_and_no_screen(tmp_path: Path) -> None:
    options = ["-s", "local:isolation=plain", "-t", "T0", "-n", "1", "--trials", "1", "--warmup", "0"]
    modules = command_line("run", *options, "-o", str(tmp_path / "measured.msgpack"))
    assert "taxtui.substrates.local.substrate" in modules
    assert packages(modules) & (SDKS | SCREENS) == set()


def test_the_cost_model_knows_nothing_of_taxtui() -> None:
    modules = imported("import costmodel; costmodel.load, costmodel.project, costmodel.curve")
    assert "costmodel.projection.measured_row" in modules
    assert not {name for name in modules if name.startswith("costmodel.attribution")}  # who asks for no steps
    assert packages(modules) & ({"taxtui"} | SDKS | SCREENS) == set()


def test_the_first_frame_waits_for_no_import_that_it_can_do_without() -> None:
    modules = imported("import taxtui.cli, taxtui.tui.launch, taxtui.tui.setup.screen")
    assert "taxtui.tui.setup.panels" in modules
    assert packages(modules) & (SDKS | {"costmodel", "msgspec", "plotext", "textual_plotext"}) == set()
    late = {"live", "plan", "recording", "report", "sandboxes"}
    assert modules & {f"taxtui.{name}" for name in late} == set()
    late = {"dialogs", "live", "setup.lookups", "setup.form", "recordings"}
    assert modules & {f"taxtui.tui.{name}" for name in late} == set()


SETUP_IS_WHOLE = """
import asyncio
from taxtui.tui.app import TaxtuiApp

async def answers(refs):
    return {}

async def main():
    app = TaxtuiApp(None, answers)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("y")
        assert "taxtui run" in app.clipboard, app.clipboard

asyncio.run(main())
"""


def test_setup_draws_no_chart_and_loads_no_sdk() -> None:
    modules = imported(f"exec({SETUP_IS_WHOLE!r})")
    assert "taxtui.report.plan_time" in modules
    assert packages(modules) & (SDKS | {"plotext", "textual_plotext"}) == set()
    assert not {name for name in modules if name.startswith(("taxtui.substrates", "taxtui.runner"))}


EACH_BY_ITSELF = """
import importlib, json, os, sys
import msgspec, plotext, textual.app, textual.widgets, textual_plotext  # not ours, and slow: once for all
for module in MODULES:
    sys.stdout.flush()
    if os.fork() == 0:
        importlib.import_module(module)
        print(json.dumps([module, sorted(sys.modules)]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, module
"""
"""Forks stand in for fresh interpreters: none of taxtui's modules is there before."""


def test_each_module_of_the_tui_can_be_imported_first_and_brings_no_substrate_and_no_runner() -> None:
    code = EACH_BY_ITSELF.replace("MODULES", repr(TUI_MODULES))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    behind = {module: set(modules) for module, modules in map(json.loads, done.stdout.splitlines())}
    assert sorted(behind) == TUI_MODULES
    for module, modules in behind.items():
        assert module in modules
        forbidden = {name for name in modules if name.startswith(("taxtui.substrates", "taxtui.runner"))}
        assert forbidden | packages(modules) & SDKS == set(), f"behind {module}"


def test_only_a_page_waits_for_what_draws_it(tmp_path: Path) -> None:
    pages = {"jinja2", "matplotlib", "numpy"}
    recording = "recordings/small.msgpack"
    assert packages(command_line("report", recording)) & pages == set()
    assert packages(command_line("report", recording, "--html", str(tmp_path / "page.html"))) >= {
        "jinja2",
        "matplotlib",
    }
    assert packages(command_line("report", "--help") | command_line("site", "--help")) & (pages | {"msgspec"}) == set()
