"""Killing inside a sandbox, with nothing but its own shell, all that one session or command started.

Process groups do not hold what calls setsid, and process ids are reused; a variable in the environment is inherited
by everything and changed by nothing.
"""

from __future__ import annotations

from typing import Final

MARK: Final = "TAXTUI_LAUNCH"

_ROUNDS: Final = 100
"""What forks faster than it is killed, or cannot be killed, is left to the end of the sandbox."""


def kill_script(mark: str) -> str:
    """One line of shell that kills every process whose environment holds ``MARK=mark``, but not itself."""
    return (
        f"unset {MARK}; _i=0; while _p=$(grep -lzxF '{MARK}={mark}' /proc/[0-9]*/environ 2>/dev/null); "
        f'[ -n "$_p" ] && [ $_i -lt {_ROUNDS} ]; do _i=$((_i + 1)); '
        'for _q in $_p; do _q=${_q#/proc/}; kill -9 "${_q%/environ}" 2>/dev/null; done; done'
    )
