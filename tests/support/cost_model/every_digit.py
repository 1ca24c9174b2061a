"""Projected rows as text, to be compared to the last digit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from costmodel import Row


def every_digit(rows: Sequence[Row]) -> list[str]:
    """All of each row, and the law of each."""
    laws = [one.evidence.busy_ns for one in rows if one.evidence is not None]
    assert laws
    return [re.sub(" at 0x[0-9a-f]+", "", repr(rows)), *(repr((law.values, law.counts)) for law in laws)]
