"""A comparison as JUnit XML: a suite per cell, a case per metric."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from costmodel import WORSE, Comparison
from taxtui.report.comparison.sections import ComparisonTable, cell_name
from taxtui.terminal_text import clean

DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>'
_NO_CHARACTERS: Final = re.compile("[\ufffe\uffff]")
"""Characters that are invalid in XML and not removed by ``clean``."""


def render(table: ComparisonTable) -> str:
    """Return the file. A metric beyond its limit is a failure; an unknown metric or an unpaired cell is skipped."""
    root = Element("testsuites", name="taxtui compare")
    for cell, group in groupby(table.result.comparisons, table.name):
        _suite(root, cell, list(group), table)
    for pools, side in ((table.result.only_before, "before"), (table.result.only_after, "after")):
        for pool in pools:
            suite = SubElement(root, "testsuite", name=_text(cell_name(pool)), tests="1", failures="0", skipped="1")
            case = SubElement(suite, "testcase", classname=_text(cell_name(pool)), name="the cell")
            SubElement(case, "skipped", message=f"only {side}, so not compared")
    indent(root)
    return f"{DECLARATION}\n{tostring(root, encoding='unicode')}\n"


def _suite(root: Element, cell: str, comparisons: list[Comparison], table: ComparisonTable) -> None:
    states = [comparison.beyond for comparison in comparisons]
    counts = {"tests": len(states), "failures": states.count(True), "skipped": states.count(None)}
    suite = SubElement(root, "testsuite", {"name": _text(cell), **{name: str(n) for name, n in counts.items()}})
    for comparison, beyond in zip(comparisons, states, strict=True):
        case = SubElement(suite, "testcase", classname=_text(cell), name=_text(comparison.metric.name))
        message = table.in_words(comparison)
        if beyond:
            SubElement(case, "failure", message=_text(message), type=WORSE)
        elif beyond is None:
            reason = f"{comparison.reason}; " if comparison.reason else ""
            SubElement(case, "skipped", message=_text(f"{comparison.verdict}: {reason}{message}"))


def _text(text: str) -> str:
    return _NO_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", clean(text))
