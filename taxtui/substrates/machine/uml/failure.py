"""What a kernel's last words amount to. Plain data in, nothing is called."""

from __future__ import annotations

import re
from typing import Final

from taxtui.errors import CreateFailed

_NOISE: Final = re.compile(
    r"^(Checking |SELinux: |mmapper_init|Failed to initialize ubd|Core dump|Adding |CPU: |\s*\[<)"
)
GARBAGE: Final = "programs that use AVX, which glibc and OpenSSL do not here, compute garbage, and nothing tells"
"""Said of a machine whose registers the kernel cannot save."""
_PANIC: Final = "Kernel panic - not syncing: "


def not_started(output: bytes) -> CreateFailed:
    """Why it ended before its first process has spoken: a panic, or else the last that it said."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if not _NOISE.match(line)]
    panic = next((line.removeprefix(_PANIC) for line in lines if line.startswith(_PANIC)), "")
    before = next((line for line in reversed(lines[: lines.index(_PANIC + panic)]) if line), "") if panic else ""
    said = ": ".join(filter(None, (before, panic))) or next((line for line in reversed(lines) if line), "")
    return CreateFailed(f"the kernel did not start: {said or 'it said nothing'}")


def silent(within_s: float) -> CreateFailed:
    """Its first process has not spoken in time."""
    return CreateFailed(f"the kernel runs, but its first process said nothing within {within_s:g} s")


def no_network() -> CreateFailed:
    """It was to have one."""
    return CreateFailed("a machine of user-mode Linux has no network here, and this needs one")
