"""The worked example of the cost model is true, to the digit."""

from __future__ import annotations

import doctest

import pytest

from tests.docs.pages import ROOT, text_of


def test_the_worked_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    name = "docs/worked-example.md"
    examples = doctest.DocTestParser().get_doctest(text_of("worked-example.md").replace("```", ""), {}, name, name, 0)
    assert len(examples.examples) >= 18, "the page lost examples"
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert not report, "".join(report)
