"""The answer of one recording in a few lines, as ``taxtui run`` ends with it."""

from __future__ import annotations

import sys
from pathlib import Path

from costmodel import HELD_PER_SUCCESS, answer_of, read_recording
from taxtui.report.answer import table
from taxtui.report.answer.measured import recorded
from taxtui.report.bars import pen_of
from taxtui.report.formats import Section
from taxtui.report.formats.plain_tables import terminal_width, to_text


def summary(path: Path) -> str:
    """The table, the sentence and bars by cause, for standard error: as wide as the terminal.

    Raises:
        costmodel.errors.CostModelError: it cannot be read, or nothing in it has succeeded.
    """
    result = answer_of(recorded([read_recording(path)]), HELD_PER_SUCCESS)
    sentence = Section("", [], [], [table.said(result)])
    sections = [table.main(result, "", brief=True), sentence, *table.bars(result)]
    return to_text(sections, terminal_width(), pen_of(sys.stderr))
