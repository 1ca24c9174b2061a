"""What docs/authoring shows works: the substrate passes the suite, the tier is measured, the fake's test passes."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import pytest

from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from tests.docs.pages import ROOT, blocks


def example(marker: str) -> str:
    [source] = [block for block in blocks("authoring/substrate.md", "python") if marker in block]
    return source


def module_of(source: str, name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module  # msgspec looks annotations up there
    exec(compile(source, "docs/authoring/substrate.md", "exec"), module.__dict__)
    return module


FOLDERS = module_of(example("class Folders"), "folders")


def test_an_author_imports_one_package_of_taxtui() -> None:
    imported = set()
    for node in ast.walk(ast.parse(example("class Folders"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    assert {name for name in imported if name.startswith(("taxtui", "costmodel"))} == {"taxtui.sandboxes"}


def test_the_example_is_short() -> None:
    assert len(example("class Folders").splitlines()) < 60


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_the_substrate_of_the_page_passes_the_conformance_suite(check: Check) -> None:
    with tempfile.TemporaryDirectory() as root:
        try:
            await check(lambda: FOLDERS.Folders(FOLDERS.Options(root)))
        except NotApplicable as reason:
            assert FOLDERS.Folders.capabilities.acquire == ("create",), reason


async def test_the_test_with_the_fake_passes() -> None:
    await module_of(example("FakeSubstrate"), "with_the_fake").test_mine()


@pytest.mark.timeout(120)
def test_the_tier_of_the_page_can_be_measured(tmp_path: Path) -> None:
    [tier] = blocks("authoring/tier.md", "toml")
    (tmp_path / "mine.toml").write_text(tier)
    command = "run -s local:isolation=plain -t mine.toml -n 10 --trials 2 --warmup 0 -o mine.msgpack --progress none"
    run = [sys.executable, "-m", "taxtui", *command.split()]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "mine.msgpack"), done.stderr


def test_there_is_a_page_for_each_thing_to_add() -> None:
    assert {page.stem for page in (ROOT / "docs/authoring").iterdir()} == {"substrate", "tier", "format", "screen"}
