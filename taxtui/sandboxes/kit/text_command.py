"""The shell program around each command of a text-only provider, and the reader of the answer.

Daytona's toolbox and harnesses give a script to a shell (zsh, bash or sh) and return both streams as text, some merged.
The call waits for every process with an open stream, and reports no process id. Therefore the command writes to two
files, as in a merged session: :class:`~taxtui.sandboxes.kit.shell.frames.MergedFrames`. The command's mark is among the
arguments and in the environment of all processes of the command, for the kill.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final, NamedTuple

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.kill import MARK, new_mark
from taxtui.sandboxes.kit.shell.framed_shell import quoted
from taxtui.sandboxes.kit.shell.frames import BEGIN, STDOUT, MergedFrames
from taxtui.sandboxes.protocol import ExecResult

_ARGUMENT: Final = 60_000  # characters; Linux takes no argument beyond 128 KiB


class TextCommand(NamedTuple):
    """The script to send, its mark, and the markers of the answer."""

    script: str
    mark: str  # for kit.kill
    nonce: str


def wrap(command: Command, shell: str, env: Mapping[str, str], *, inside: bool = False) -> TextCommand:
    """The program around a command. ``inside``: the text is for ``shell`` itself, without another shell."""
    # The nonce has more halves besides the mark: a list of the shell's variables contains no marker.
    mark, *halves = (new_mark() for _ in range(4))
    nonce = "".join([mark, *halves])
    frames = _frames(nonce)
    subshell = frames.subshell('eval "$1"', stdin="<&4 4<&-")
    program = f"{BEGIN}; {frames.PROLOGUE}( {subshell})\n_r=$?; exec 4<&-\n{frames.shell('')}"
    script = quoted(command.script)
    feed, stdin, heredoc, bodies = "", "/dev/null", "", ""
    if command.stdin:
        feed, stdin = f"base64 -d <<'{mark}' | ", "&0"
        bodies += f"{base64.encodebytes(command.stdin).decode()}{mark}\n"
    if len(command.script) > _ARGUMENT:
        program, script = f'set -- "$(cat <&3)"; exec 3<&-; {program}', "''"
        heredoc = f" 3<<'{halves[0]}'"
        bodies += f"{command.script}\n{halves[0]}\n"
    exports = "".join(f"export {name}={quoted(value)}\n" for name, value in {**env, MARK: mark}.items())
    run = (
        f"{{ set -- {script}; eval {quoted(program)}; }}"
        if inside
        else f"{shell} -c {quoted(program)} {shell} {script}"
    )
    return TextCommand(f"{exports}{feed}{run} 4<{stdin} 2>/dev/null{heredoc}\n{bodies}", mark, nonce)


def read(answer: str, nonce: str) -> ExecResult | None:
    """The command's result, or None if the program did not end.

    Raises:
        ExecFailed: the program did not print this answer: a command can find the nonce, and forge an answer.
    """
    frames = _frames(nonce)
    try:
        frames.feed(STDOUT, answer.encode(errors="replace"))
        return frames.result() if frames.complete else None
    except ValueError:
        raise ExecFailed("the command's answer is garbled: the shell program prints no such text") from None


def _frames(nonce: str) -> MergedFrames:
    middle = len(nonce) // 2
    return MergedFrames(nonce[:middle], nonce[middle:])
