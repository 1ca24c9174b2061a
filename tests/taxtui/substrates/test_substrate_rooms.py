"""A substrate's ``failure.py`` turns plain data into errors, without an SDK, input or output. Read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import taxtui

SUBSTRATES: Final = Path(taxtui.__file__).parent / "substrates"
CLASSIFIERS: Final = sorted(SUBSTRATES.rglob("failure.py"))
OURS: Final = ("taxtui.errors", "taxtui.sandboxes.kit.refusal", "taxtui.substrates.", "msgspec")
IO: Final = {
    *("asyncio", "http", "os", "pathlib", "select", "shutil", "socket", "ssl", "subprocess", "threading", "time"),
    *("urllib", "open", "print", "input"),
}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


@pytest.mark.parametrize("path", CLASSIFIERS, ids=lambda path: str(path.relative_to(SUBSTRATES)))
def test_a_classifier_imports_no_sdk_and_does_no_io(path: Path) -> None:
    tree = ast.parse(path.read_text())
    standard = sys.stdlib_module_names - IO
    assert not {name for name in imports(tree) if not name.startswith(OURS) and name.partition(".")[0] not in standard}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & IO
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
