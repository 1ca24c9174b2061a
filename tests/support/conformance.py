"""Which of the conformance suite's checks a second runtime of the same adapter has to pass."""

from __future__ import annotations

from typing import Final

COMMANDS: Final = (
    "exit codes",
    "streams",
    "exact bytes",
    "5 MB output",
    "standard input",
    "scripts",
    "surroundings",
    "commands are apart",
    "output like a protocol",
    "chatter between commands",
    "timeout",
    "timeout with closed streams",
    "a killed shell",
    "closing",
)
"""Checks that ask nothing of how a sandbox comes and goes, and leave nothing running in it."""

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
