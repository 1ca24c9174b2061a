"""Tunes the garbage collector and the thread switches, to keep pauses out of measurements."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_INTERVAL_S: Final = 0.0005
"""A blocking SDK in a thread may hold the interpreter for this long; the default of 5 ms would
show in every latency (p50 of the loop's lag next to a busy thread: 5.4 ms, now 0.8 ms)."""
COLLECT_AFTER: Final = (50_000, 10, 10)
"""Cycles are looked for this rarely. With 2,000 trials in flight the default of 700 looks through all of them every
second: a quarter of the processor time of the run, and most of the loop's lag. This takes some 20 MB instead."""


def settle() -> None:
    """For the whole process; before anything is timed."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*COLLECT_AFTER)
