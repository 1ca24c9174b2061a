"""Imports: the contracts of pyproject.toml catch violations, and a command loads no module that it does not need."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
PLANTED = {
    "One direction": ("taxtui/recording/writer.py", "import taxtui.report.numbers"),
    "No circles": ("taxtui/errors.py", "import taxtui.folders"),
    "The rooms of the cost model": ("costmodel/statistics/intervals.py", "import costmodel.training.run"),
    "The cost model knows nothing of taxtui": ("costmodel/projection/warnings.py", "import taxtui.errors"),
    "The cost model is used by its public names": ("taxtui/recording/writer.py", "import costmodel.recording.framing"),
    "The cost model starts no process": ("costmodel/recording/load.py", "import multiprocessing.pool"),
    "Nothing imports a substrate": ("taxtui/sandboxes/registry.py", "import taxtui.substrates.local.substrate"),
    "No provider knows another": ("taxtui/substrates/docker/http.py", "import taxtui.substrates.aws.connection"),
    "Substrates need no more than plug-ins": ("taxtui/substrates/local/folders.py", "import taxtui.recording.writer"),
    "An SDK is imported by its own substrate only": ("taxtui/recording/writer.py", "import docker"),
    "The TUI measures nothing": ("taxtui/tui/colours.py", "import taxtui.runner.health"),
    "Only the TUI draws": ("taxtui/report/numbers.py", "import rich.text"),
    "Only pages need what pages need": ("taxtui/report/marks.py", "import matplotlib.figure"),
}
"""Contract → a file and a forbidden import in that file."""
SDKS = {
    *("aiohttp", "asyncssh", "boto3", "botocore", "daytona", "daytona_api_client_async", "docker", "kubernetes"),
    *("daytona_toolbox_api_client_async", "ray", "requests", "websockets"),
}
SCREENS = {"plotext", "rich", "textual", "textual_plotext"}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> str:
    copy = tmp_path_factory.mktemp("planted")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in ("taxtui", "costmodel"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, line in PLANTED.values():
        with (copy / file).open("a") as source:
            source.write(f"\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {line}\n")
    argv = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    result = subprocess.run([*argv, "--no-cache"], cwd=copy, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stderr
    return result.stdout


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["name"])
def test_every_contract_catches_a_forbidden_import(contract: dict[str, object], verdicts: str) -> None:
    name = str(contract["name"])
    assert f"{name} BROKEN" in verdicts
    file, line = PLANTED[name]
    importer, imported = file.removesuffix(".py").replace("/", "."), line.removeprefix("import ")
    evidence = [f"{importer} -> {imported}", f"{importer} -> {imported.partition('.')[0]} ", ".errors -> .folders"]
    assert any(text in verdicts for text in evidence[: 3 if name == "No circles" else 2])
    if "ignore_imports" in contract:
        assert contract["unmatched_ignore_imports_alerting"] == "error", "an exception outlives its reason"


def test_a_public_class_name_has_one_meaning() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(file for package in ("taxtui", "costmodel") for file in (ROOT / package).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert len(places) > 200
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_the_daytona_extra_names_every_imported_distribution() -> None:
    packages = set()
    for path in (ROOT / "taxtui/substrates/daytona").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                packages |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                packages.add(node.module.partition(".")[0])
    packages -= sys.stdlib_module_names | {"taxtui"}
    distributions = packages_distributions()
    needed = {name.replace("_", "-").lower() for package in packages for name in distributions[package]}
    assert "daytona-api-client-async" in needed
    extra = PROJECT["project"]["optional-dependencies"]["daytona"]
    declared = {re.split(r"[^\w-]", text)[0].lower() for text in (*PROJECT["project"]["dependencies"], *extra)}
    assert needed <= {name.replace("_", "-") for name in declared}


def loaded(code: str) -> set[str]:
    report = "import sys\ntry:\n    CODE\nfinally:\n    import json; print('\\n' + json.dumps(sorted(sys.modules)))"
    argv = [sys.executable, "-c", report.replace("CODE", code)]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


PAGES = {"jinja2", "matplotlib", "numpy"}
QUICK = "-s local:isolation=plain -t T0 -n 1 --trials 1 --warmup 0"


@pytest.mark.parametrize(
    ("command", "needed", "others"),
    [
        ("--help", {"click"}, SDKS | SCREENS | PAGES | {"asyncio", "costmodel", "msgspec"}),
        ("report --help", {"click"}, SDKS | SCREENS | PAGES | {"msgspec"}),
        ("report recordings/small.msgpack", {"costmodel"}, SDKS | SCREENS | PAGES),
        ("report recordings/small.msgpack --html {tmp}/page.html", {"jinja2", "matplotlib"}, SDKS | SCREENS),
        ("project essay --trajectories 1000 --workers 10", {"costmodel"}, SDKS | SCREENS | {"asyncio", "numpy"}),
        (f"run {QUICK} -o {{tmp}}/measured.msgpack", {"asyncio"}, SDKS | SCREENS),
    ],
)
def test_a_command_loads_what_it_needs_alone(command: str, needed: set[str], others: set[str], tmp_path: Path) -> None:
    words = command.format(tmp=tmp_path).split()
    modules = loaded(f"from taxtui.cli import app; app({words!r}, standalone_mode=False)")
    assert packages(modules) >= needed
    assert packages(modules) & others == set()
    if command.startswith("project"):
        parts = ("taxtui.runner", "taxtui.substrates", "taxtui.tui", "costmodel.attribution")
        assert not {name for name in modules if name.startswith(parts)}


def test_the_first_frame_of_the_tui_waits_for_no_import() -> None:
    modules = loaded("import taxtui.cli, taxtui.tui.launch, taxtui.tui.setup.screen")
    assert "taxtui.tui.setup.panels" in modules
    assert packages(modules) & (SDKS | {"costmodel", "msgspec", "plotext", "textual_plotext"}) == set()
    late = {f"taxtui.{name}" for name in ("live", "plan", "recording", "report", "sandboxes")}
    late |= {f"taxtui.tui.{name}" for name in ("dialogs", "live", "setup.lookups", "setup.form", "recordings")}
    assert modules & late == set()
