"""The clock of taxtui's own shell wrappers: begin and end of the outermost wrapper, in the sandbox's wall-clock time.

Each wrapper's first statement is :data:`BEGIN`. A subshell inherits the variable, and the innermost program, the
runner's in-sandbox timer, prints the variable with two more times. The wrapper's last line of output ends with
:data:`NOW`. All four times are of the same clock.
"""

from __future__ import annotations

import re
from typing import Final

UNKNOWN: Final = -1
BEGAN: Final = "_taxtui_entered"
"""The shell variable with the beginning of the outermost wrapper. Not exported."""
NOW: Final = "$EPOCHREALTIME"
"""Seconds since 1970 with six decimals in bash 5 and later, and empty in every other shell."""
BEGIN: Final = f"{BEGAN}={NOW}"
LONGEST: Final = 20
"""Characters of a time at most."""

_TIME: Final = re.compile(rb"(\d{1,12})[.,](\d{6})")  # the decimal point follows the locale


def epoch_ns(text: bytes) -> int:
    """A printed time in nanoseconds since 1970; ``UNKNOWN`` if the shell has no such clock."""
    match = _TIME.fullmatch(text)
    return int(match[1] + match[2]) * 1000 if match else UNKNOWN
