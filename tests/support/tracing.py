"""Coverage of what a test begins with: the lines that it runs again and again would only be traced again and again."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final

from coverage import Coverage

TRACED_CPU_S: Final = 0.1
"""How much of a test is traced. CPU time of its own, so that a loaded machine sees the same lines as an idle one."""
TRACED_AGAIN_CPU_S: Final = 0.02
"""And of each further case of the same test."""


@contextlib.contextmanager
def traced(cpu_s: float) -> Iterator[None]:
    """Where coverage is measured: of the body only the first ``cpu_s`` of this process, in all of its threads.

    For the main thread only, which alone is told by a signal. Behind the body only the last of the measurements that
    were begun goes on: in a worker of xdist's pytest-cov begins two and forgets the first, which would be resumed by
    whoever stops the second.
    """
    measured = Coverage.current()
    if measured is None:
        yield
        return

    def enough(number: int, frame: FrameType | None) -> None:
        _stop()

    signal.signal(signal.SIGPROF, enough)  # and stays: one that is late must not end the process
    if cpu_s:
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
    else:
        _stop()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        _stop()
        measured.start()


def _stop() -> None:
    while running := Coverage.current():
        running.stop()
