"""The README's worked example of the cost model is true, to the digit."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_worked_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## The cost model")[2].partition("\n## ")[0]
    examples = doctest.DocTestParser().get_doctest(section.replace("```", ""), {}, "README.md", "README.md", 0)
    assert len(examples.examples) >= 8, "the README lost the worked example of the cost model"
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert not report, "".join(report)
