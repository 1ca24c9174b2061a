"""The causes of the time of one workload at each substrate, as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from costmodel.analysis.ranking import HELD, Answer, WorkLine
from taxtui.report.bars import Bar, bars_of
from taxtui.terminal_text import clean

UNKNOWN: Final = "the causes are unknown"


def title(found: Answer, line: WorkLine | None) -> str:
    """The heading of the bars."""
    unit = "one trajectory" if found.measure == HELD else "worker-hours"
    return f"{unit} by cause{f' · {clean(line.name)}' if line else ''}"


def bars(found: Answer, line: WorkLine | None) -> Sequence[Bar]:
    """Return a bar for each row of the workload whose causes are known."""
    return bars_of(found, line) if line else ()
