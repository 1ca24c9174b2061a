"""The import contracts of pyproject.toml catch what they are for, and an extra names the packages that are imported."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
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
    "The cost model starts no process": ("costmodel/recording/reader.py", "import multiprocessing.pool"),
    "Nothing imports a substrate": ("taxtui/sandboxes/registry.py", "import taxtui.substrates.local.substrate"),
    "No provider knows another": ("taxtui/substrates/docker/http.py", "import taxtui.substrates.aws.connection"),
    "Substrates need no more than plug-ins": ("taxtui/substrates/local/folders.py", "import taxtui.recording.writer"),
    "An SDK is imported by its own substrate only": ("taxtui/recording/writer.py", "import docker"),
    "The TUI measures nothing": ("taxtui/tui/colours.py", "import taxtui.runner.health"),
    "Only the TUI draws": ("taxtui/report/numbers.py", "import rich.text"),
    "Only pages need what pages need": ("taxtui/report/marks.py", "import matplotlib.figure"),
}
"""Contract → a file, and what it must not import; each also where only a type checker would."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of a copy with all of them planted."""
    copy = tmp_path_factory.mktemp("planted")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in ("taxtui", "costmodel"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, line in PLANTED.values():
        with (copy / file).open("a") as source:
            source.write(f"\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {line}\n")
    argv = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*argv, "--no-cache"], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.mark.parametrize("contract", [contract["name"] for contract in CONTRACTS])
def test_every_contract_is_broken_by_what_it_forbids(contract: str, verdicts: str) -> None:
    assert f"{contract} BROKEN" in verdicts
    file, line = PLANTED[contract]
    importer, imported = file.removesuffix(".py").replace("/", "."), line.removeprefix("import ")
    evidence = [f"{importer} -> {imported}", f"{importer} -> {imported.partition('.')[0]} ", ".errors -> .folders"]
    assert any(one in verdicts for one in evidence[: 3 if contract == "No circles" else 2])


def test_no_exception_outlives_its_reason() -> None:
    alerts = {
        contract["name"]: contract.get("unmatched_ignore_imports_alerting")
        for contract in CONTRACTS
        if "ignore_imports" in contract
    }
    assert set(alerts.values()) == {"error"}


def imported_packages(folder: Path) -> set[str]:
    """The top-level packages that the modules of a folder import."""
    packages = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                packages |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                packages.add(node.module.partition(".")[0])
    return packages - sys.stdlib_module_names - {"taxtui"}


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", requirement)[0].replace("_", "-").lower() for requirement in requirements}


def test_the_daytona_extra_names_every_distribution_that_the_substrate_imports() -> None:
    distributions = packages_distributions()
    imports = imported_packages(ROOT / "taxtui" / "substrates" / "daytona")
    needed = {name.replace("_", "-").lower() for package in imports for name in distributions[package]}
    extra = declared(PROJECT["project"]["optional-dependencies"]["daytona"])
    assert "daytona-api-client-async" in needed
    assert needed - declared(PROJECT["project"]["dependencies"]) <= extra
    assert "daytona-sdk" not in extra, "PyPI: deprecated, migrate to daytona"
