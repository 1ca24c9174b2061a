"""The labels of every sandbox: the run, the trial, and the deadline."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import Final

from taxtui.sandboxes.protocol import Found

LABEL_RUN: Final = "taxtui.run"
LABEL_TRIAL: Final = "taxtui.trial"
LABEL_DEADLINE: Final = "taxtui.deadline"
"""Label keys. The deadline's value is whole Unix seconds, for people and sweeps; providers enforce their own."""

END_OF_TIME_S: Final = 253_402_300_799
"""The year 9999, the last of calendars: a label may have any value."""
_ALL_TIME_DIGITS: Final = len(str(END_OF_TIME_S))
_DIGITS: Final = re.compile(r"[0-9]+")


def of_trial(run_id: str, trial: int, ttl_s: float) -> dict[str, str]:
    """The labels of a trial's sandbox with the deadline ``ttl_s`` from now."""
    return {LABEL_RUN: run_id, LABEL_TRIAL: str(trial), LABEL_DEADLINE: str(math.ceil(time.time() + ttl_s))}


def unix_s(text: str) -> int | None:
    """A label's whole Unix seconds, at most ``END_OF_TIME_S``; None for any other text."""
    if not _DIGITS.fullmatch(text):
        return None
    return END_OF_TIME_S if len(text) > _ALL_TIME_DIGITS else min(int(text), END_OF_TIME_S)


def found(labels: Mapping[str, str], *, name: str, handle: str, age_s: float) -> Found:
    """The sandbox with these labels; ``handle`` is the provider's id."""
    return Found(
        name=name,
        handle=handle,
        run_id=labels.get(LABEL_RUN, ""),
        age_s=max(0.0, age_s),
        deadline_unix_s=unix_s(labels.get(LABEL_DEADLINE, "")),
    )
