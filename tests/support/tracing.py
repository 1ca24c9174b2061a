"""Coverage of what a test begins with: the lines that it runs again and again would only be traced again and again."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final

from coverage import Coverage

TRACED_CPU_S: Final = 0.1
"""How much of a test is traced, and of each fixture.

CPU time of their own, so that a loaded machine sees the same lines as an idle one.
"""
TRACED_RUN_CPU_S: Final = 2.0
"""And of a test of the runner: a whole run reaches the code of its end late."""
ALL: Final = "TAXTUI_TRACE_ALL"
"""Environment variable: trace every test to its end, and never pause."""

_measured: Coverage | None = None


def pause() -> None:
    """Trace only inside of ``traced``, not pytest's own work.

    Continues the last measurement: in a worker of xdist pytest-cov begins two and forgets the first.
    """
    if os.environ.get(ALL):
        return
    global _measured
    _measured = Coverage.current() or _measured
    _stop()


@contextlib.contextmanager
def traced(cpu_s: float) -> Iterator[None]:
    """Where coverage is measured, and paused: of the body the first ``cpu_s`` of this process, in all of its threads.

    For the main thread only, which alone is told by a signal. A body in one that is traced ends with it.
    """
    if _measured is None or Coverage.current():
        yield
        return

    def enough(number: int, frame: FrameType | None) -> None:
        _stop()

    signal.signal(signal.SIGPROF, enough)  # and stays: one that is late must not end the process
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    _measured.start()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        _stop()


def _stop() -> None:
    while running := Coverage.current():
        running.stop()
