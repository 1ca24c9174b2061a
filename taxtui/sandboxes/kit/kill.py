"""Kill all processes of a command or session without process ids from the provider.

A mark is in the command's environment, or among its arguments, or both. Every process of the command inherits the
environment by ``exec`` and the arguments by ``fork``, in any session or group; the group of a marked leader ends too. A
process outside of the group, with an emptied environment, ends with the sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from taxtui.errors import CleanupFailed, ExecFailed

MARK: Final = "TAXTUI_LAUNCH"
"""The environment variable for a mark."""
GONE_WITHIN_S: Final = 5.0
"""Time limit for the end of a killed process on this machine."""

LEFT: Final = "a command's processes may still run in the sandbox"
"""Beginning of the error of every failed kill."""

_ROUNDS: Final = 100
"""A process with faster forks than kills, or an unkillable process, ends with the sandbox."""


def new_mark() -> str:
    """A new mark: sixteen hexadecimal digits."""
    return secrets.token_hex(8)


def kill_script(mark: str, *, carried_by_all: str = "", inside: str = "") -> str:
    """A line for any POSIX shell with GNU's or BusyBox's grep: kill every process with ``mark`` except the shell
    itself.

    ``carried_by_all``: a variable of all processes in the sandbox; a process without the variable is killed too.
    ``inside``: a folder, of letters without a meaning for sed; a process with its working folder there is killed too.
    Exits with 0 once all are killed, else with 1, after words on stderr if grep is missing.
    """
    # The pattern in brackets does not match itself among arguments. Each substitution is a single command, which
    # replaces the subshell: no copy of this shell, with this shell's environment, exists.
    listing = f"$(grep -ls '[{mark[0]}]{mark[1:]}' /proc/[0-9]*/environ /proc/[0-9]*/cmdline)"
    strays = ""
    if carried_by_all:
        strays = (
            "set -- $(grep -ls . /proc/[0-9]*/cmdline); "  # kernel threads and zombies have none
            'for _f; do shift; set -- "$@" "${_f%cmdline}environ"; done; '
        )
        listing += f" $(grep -Ls '{carried_by_all}=' \"$@\")"
    if inside:
        link = rf"s|^.* \(/proc/[0-9]*/cwd\) -> {inside}\(/.*\)\{{0,1\}}$|\1|p"
        listing += f" $(ls -l /proc/[0-9]*/cwd 2>/dev/null | sed -n '{link}')"
    return (
        f"cd /; unset {MARK}; _i=0; _n=1; "
        f'while [ -n "$_n" ] && [ $_i -lt {_ROUNDS} ]; do _i=$((_i + 1)); _n=; {strays}'
        f"for _f in {listing}; do _f=${{_f#/proc/}}; _f=${{_f%/*}}; "
        "[ $_f = 1 ] || [ $_f = $$ ] || { kill -9 -$_f && _n=1; kill -9 $_f && _n=1; } 2>/dev/null; "
        'done; done; [ -z "$_n" ] && command -v grep >/dev/null || false'
    )


def require_killed(code: int, words: bytes | str, *, left: str = LEFT) -> None:
    """Raise ``ExecFailed`` if the exit code of ``kill_script`` reports survivors.

    Any other code means success, or a script that was killed with the sandbox. ``words``: the script's output.
    ``left``: the beginning of the error.
    """
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    if code == 1:
        raise ExecFailed(f"{left}: {' '.join(text.split()) or 'they survive SIGKILL'}")


async def kill_marked(variable: str) -> None:
    """Kill every process of this machine with ``NAME=value`` in the environment, at any depth.

    Recorded process ids would not do: the kernel reuses them. Raises ``CleanupFailed``.
    """
    wanted = variable.encode()
    # Twice: during exec a process has no environment for a moment.
    await kill_all(lambda: marked(wanted) or marked(wanted))


async def kill_all(alive: Callable[[], set[int]]) -> None:
    """Kill the processes in ``alive()`` until none is left. Raises ``CleanupFailed``."""
    give_up = time.monotonic() + GONE_WITHIN_S
    while pids := alive():
        if time.monotonic() > give_up:
            raise CleanupFailed(f"{len(pids)} processes of the sandbox survive SIGKILL")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.001)


def marked(variable: bytes) -> set[int]:
    """The processes of this machine with ``NAME=value`` in their environment."""
    if not Path("/proc/self/environ").exists():
        return _marked_by_ps(variable)
    pids = set()
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                with contextlib.suppress(OSError), io.FileIO(f"{entry.path}/environ") as environ:  # of all: quickly
                    if variable in environ.readall().split(b"\0"):
                        pids.add(int(entry.name))
    return pids - {os.getpid()}


def _marked_by_ps(variable: bytes) -> set[int]:
    """As ``marked``, without /proc (macOS)."""
    rows = subprocess.run(
        ["ps", "axeww", "-o", "pid=", "-o", "command="], stdout=subprocess.PIPE, check=False
    ).stdout.splitlines()
    return {int(row.split()[0]) for row in rows if variable in row.split()} - {os.getpid()}
