"""Shell code that captures a command's output in two files and prints it without starting a process.

bash keeps the text of a here-document in a temporary file that it has already unlinked. Its compatibility level 50
does so for short texts too. The command writes to that file through ``/proc/self/fd``: nothing has to be removed, and
a process that the command leaves behind cannot reach the files of the next command. The file has the mode 0400, so only
root may write to it. Every other user, and every other shell, needs named files that the program removes.
"""

from __future__ import annotations

from typing import Final

CLOSED: Final = "8<&- 9<&-"
"""Redirections that keep the files from the command, once its streams are open."""

UNLINKED: Final = r"""BASH_COMPAT=50 eval "exec 8<<<'' 9<<<''"; _o=/proc/self/fd/8; _e=/proc/self/fd/9"""
"""bash: set ``$_o`` and ``$_e`` to the paths of two new, empty, unlinked files."""

USABLE: Final = "[[ -f $_o && -w $_o && -f $_e && -w $_e ]]"
"""bash: whether there are such files. Without ``/proc``, or where a here-document is a pipe, there are none."""


def is_plain(limit: int) -> str:
    """A condition of bash: the file ``$1`` is printable text of at most ``limit`` bytes, which ``$_v`` then holds.

    ``read`` fails where it comes to the end of the file: all of it was read, and no byte is NUL. The caller sets
    ``LC_ALL=C``, so that bytes are counted.
    """
    return rf"""! IFS= read -rd '' -n {limit} _v <"$1" && [[ $_v != *[^$'\t\n'\ -~]* ]]"""
