"""Which of the conformance suite's checks a second runtime of the same adapter has to pass."""

from __future__ import annotations

from typing import Final

CORE: Final = (
    "check answers",
    "exit codes",
    "streams",
    "exact bytes",
    "5 MB output",
    "standard input",
    "timeout",
    "a killed shell",
    "from create to destroy",
    "destroy while a command runs",
    "find and reap",
    "deadline",
    "reset",
)
