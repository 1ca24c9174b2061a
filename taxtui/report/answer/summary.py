"""The answer of one recording in a few lines, as ``taxtui run`` ends with it."""

from __future__ import annotations

from pathlib import Path

from costmodel.analysis.ranking import HELD, answer_of
from costmodel.recording.reader import read_recording
from taxtui.report.answer import table
from taxtui.report.answer.measured import recorded
from taxtui.report.formats import Section
from taxtui.report.formats.plain_tables import terminal_width, to_text


def summary(path: Path) -> str:
    """The table, then the sentence, as wide as the terminal.

    Raises:
        costmodel.errors.CostModelError: it cannot be read, or nothing in it has succeeded.
    """
    found = answer_of(recorded([read_recording(path)]), HELD)
    sentence = Section("", [], [], [table.said(found)])
    return to_text([table.main(found, "", brief=True), sentence], terminal_width())
