"""Short answer of one recording, for the end of ``taxtui run``."""

from __future__ import annotations

import sys
from pathlib import Path

from costmodel import HELD_PER_SUCCESS, answer_of, read_recording
from taxtui.report.answer import sections
from taxtui.report.answer.measured import recorded
from taxtui.report.bars import pen_of
from taxtui.report.formats import Section
from taxtui.report.formats.plain_tables import terminal_width, to_text


def summary(path: Path) -> str:
    """Return the table, the sentence and the bars by cause, as wide as the terminal.

    Raises:
        costmodel.errors.CostModelError: the recording is unreadable, or no trial succeeded.
    """
    result = answer_of(recorded([read_recording(path)]), HELD_PER_SUCCESS)
    sentence = Section("", [], [], [sections.headline_text(result)])
    parts = [sections.main(result, "", brief=True), sentence, *sections.bars(result)]
    return to_text(parts, terminal_width(), pen_of(sys.stderr))
