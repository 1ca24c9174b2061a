"""What a program takes, for benchmarks that start some."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Taken(NamedTuple):
    """Wall-clock seconds, the most memory in MB that it or one of its processes had, and its exit code.

    Memory is never less than what this process had as it started it: the kernel counts that in.
    """

    seconds: float
    memory_mb: float
    exit_code: int
    cpu_s: float = 0.0  # user and system, of it and its children: what does not depend on what runs beside


def taken(words: Sequence[str | Path], give_up_s: float = 3600.0) -> Taken:
    """By a program whose output nobody wants; it is killed where it takes too long."""
    began = time.perf_counter()
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killer = threading.Timer(give_up_s, process.kill)
    killer.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    killer.cancel()
    return Taken(time.perf_counter() - began, used.ru_maxrss / 1e3, process.returncode, used.ru_utime + used.ru_stime)
