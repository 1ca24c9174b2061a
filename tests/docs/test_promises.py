"""Each promise of docs/promises.md is held by a test that is there."""

from __future__ import annotations

import ast
import re

from tests.docs.pages import ROOT, text_of


def test_every_promise_has_its_test() -> None:
    rows = re.findall(r"^\| (?!\*\*|promise|-)(.+?) \| (.*) \|$", text_of("promises.md"), re.MULTILINE)
    assert len(rows) > 25
    for promise, test in rows:
        place, _, name = test.strip("`").partition("::")
        names = [node.name for node in ast.walk(ast.parse((ROOT / place).read_text())) if hasattr(node, "name")]
        assert name in names, promise
