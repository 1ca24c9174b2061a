"""Each guarantee of tests/GUARANTEES.md names a test that exists."""

from __future__ import annotations

import ast
import re

from tests.docs.pages import ROOT


def test_every_guarantee_names_a_test_that_exists() -> None:
    text = (ROOT / "tests/GUARANTEES.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!\*\*|guarantee|-)(.+?) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 25
    for guarantee, test in rows:
        path, _, name = test.strip("`").partition("::")
        assert (ROOT / path).is_file(), guarantee
        names = [node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if hasattr(node, "name")]
        assert name in names, guarantee
