"""A gate's comparisons as JUnit XML, which every CI service reads: a suite per cell, a case per metric."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from costmodel.analysis.regression import REGRESSED, TOO_LITTLE, Comparison
from taxtui.report.gate.verdicts import Verdicts, unpaired
from taxtui.terminal_text import clean

DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>'
_NO_CHARACTERS: Final = re.compile("[\ufffe\uffff]")
"""What ``clean`` leaves of what no XML file may hold, escaped or not."""


def render(told: Verdicts) -> str:
    """The whole file. A regression is a failure; what cannot be told, and what one side alone holds, is skipped."""
    root = Element("testsuites", name="taxtui compare")
    for cell, group in groupby(told.gate.comparisons, told.name):
        _suite(root, cell, list(group), told)
    for pools, side in ((told.gate.only_before, "before"), (told.gate.only_after, "after")):
        for pool in pools:
            suite = SubElement(root, "testsuite", name=_text(unpaired(pool)), tests="1", failures="0", skipped="1")
            case = SubElement(suite, "testcase", classname=_text(unpaired(pool)), name="the cell")
            SubElement(case, "skipped", message=f"only {side}, so not compared")
    indent(root)
    return f"{DECLARATION}\n{tostring(root, encoding='unicode')}\n"


def _suite(root: Element, cell: str, comparisons: list[Comparison], told: Verdicts) -> None:
    verdicts = [one.verdict for one in comparisons]
    counts = {"tests": len(verdicts), "failures": verdicts.count(REGRESSED), "skipped": verdicts.count(TOO_LITTLE)}
    suite = SubElement(root, "testsuite", {"name": _text(cell), **{name: str(n) for name, n in counts.items()}})
    for one in comparisons:
        case = SubElement(suite, "testcase", classname=_text(cell), name=_text(one.metric.name))
        if one.verdict == REGRESSED:
            SubElement(case, "failure", message=_text(told.in_words(one)), type=REGRESSED)
        elif one.verdict == TOO_LITTLE:
            SubElement(case, "skipped", message=_text(f"inconclusive: {one.reason}; {told.in_words(one)}"))


def _text(text: str) -> str:
    return _NO_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", clean(text))
