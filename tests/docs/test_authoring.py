"""The examples for authors work: the substrate passes the suite, the tier is measured, the fake's test passes."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
import tomllib
import types
from pathlib import Path

import pytest

from taxtui.errors import UsageError
from taxtui.sandboxes import new
from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from tests.docs.pages import ROOT, blocks


def module_of(source: str, name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module  # msgspec looks annotations up there
    exec(compile(source, "docs/new-substrate.md", "exec"), module.__dict__)
    return module


EXAMPLE = ROOT / "taxtui/sandboxes/example.py"
CHECKS = ("check answers", "from create to destroy", "find and reap", "exec: exit codes", "exec: standard input")
"""Of all checks, which the example itself passes in test_simple_substrate.py."""


def test_the_example_is_short_and_imports_one_module_of_taxtui() -> None:
    source = EXAMPLE.read_text()
    assert len(source.splitlines()) <= 120
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    ours = {name for name in imported if name.startswith(("taxtui", "costmodel"))}
    assert ours == {"taxtui.sandboxes.simple", "taxtui.sandboxes.fake_sdk"}  # the SDK stands for the provider's


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which ``taxtui setup --new acme_lab`` was called."""
    folder = tmp_path_factory.mktemp("new")
    words = [sys.executable, "-m", "taxtui", "setup", "--new", "acme_lab"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:2] == ["wrote acme_lab.py", "wrote pyproject.toml"]
    return folder


@pytest.mark.parametrize("check", [each for each in checks() if str(each) in CHECKS], ids=str)
async def test_what_new_writes_passes_the_conformance_suite(check: Check, written: Path) -> None:
    module = sys.modules.get("acme_lab") or module_of((written / "acme_lab.py").read_text(), "acme_lab")
    with tempfile.TemporaryDirectory() as account:
        try:
            await check(lambda: module.AcmeLab(module.AcmeLabOptions(account)))
        except NotApplicable as reason:
            pytest.skip(str(reason))


def test_the_entry_point_that_new_writes_names_its_class(written: Path) -> None:
    project = tomllib.loads((written / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["taxtui.substrates"] == {"acme_lab": "acme_lab:AcmeLab"}
    assert "example" not in (written / "acme_lab.py").read_text().lower()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Acme", "cannot be the name"),
        ("class", "cannot be the name"),
        ("docker", "there is a substrate 'docker' already"),
        ("acme_lab", "exists already"),
    ],
)
def test_new_refuses_a_bad_name_and_overwrites_nothing(name: str, words: str, written: Path) -> None:
    before = {path.name: path.read_bytes() for path in written.iterdir()}
    with pytest.raises(UsageError, match=words):
        new.write(name, written)
    assert {path.name: path.read_bytes() for path in written.iterdir()} == before


async def test_the_test_with_the_fake_passes() -> None:
    [source] = [block for block in blocks("new-substrate.md", "python") if "FakeSubstrate" in block]
    await module_of(source, "with_the_fake").test_mine()
