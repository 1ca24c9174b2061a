"""The shell program around each command of a text-only provider, and the reader of the answer.

Daytona's toolbox and harnesses give a script to a shell (zsh, bash or sh) and return both streams as text, some merged.
The call waits for every process with an open stream, and reports no process id. Therefore the command writes to two
files. Small plain text is returned unchanged, anything else in base64 with the length. A larger output is cut to the
limits of ``kit.kept_output``. The command's mark is among the arguments and in the environment of all processes of the
command, for the kill.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final, NamedTuple

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.kept_output import HEAD_BYTES, TAIL_BYTES
from taxtui.sandboxes.kit.kill import MARK, new_mark
from taxtui.sandboxes.kit.shell.framed_shell import quoted
from taxtui.sandboxes.kit.shell.frames import CLOSED, UNLINKED, USABLE, is_plain
from taxtui.sandboxes.kit.wrapper_clock import BEGIN, LONGEST, NOW, epoch_ns
from taxtui.sandboxes.protocol import ExecResult

_ARGUMENT: Final = 60_000  # characters; Linux takes no argument beyond 128 KiB
_TEXT: Final = 65_536
_DIGITS: Final = 18  # of any file's length

# $1 the command, $2 and $3 the halves of the nonce. LC_ALL counts bytes, after the command.
_RUN: Final = (
    r"""@BEGIN@; @FILES@
( eval "$1" ) >"$_o" 2>"$_e" <&4 4<&- @CLOSED@
_r=$?; exec 4<&-; LC_ALL=C
printf '%s%s %d\n' "$2" "$3" "$_r"
_say() { @SAY@; printf '\n%s%s\n' "$2" "$3"; }
_say "$_o" "$2" "$3"; _say "$_e" "$2" "$3"; @REMOVE@
printf '%s\n%s%s\n' "@NOW@" "$2" "$3"
""".replace("@BEGIN@", BEGIN)
    .replace("@NOW@", NOW)
    .replace("@CLOSED@", CLOSED)
)
_NAMED: Final = "_o=${TMPDIR:-/tmp}/.taxtui-$2.o; _e=${_o%o}e"
_REMOVE: Final = 'rm -f "$_o" "$_e"'
_FILES: Final = {
    "bash": (f"{UNLINKED}; {USABLE} || {{ {_NAMED}; }}", f"[[ $_o = /proc/* ]] || {_REMOVE}"),
    "sh": (_NAMED, _REMOVE),
}
# The length, and the beginning and end of a larger file.
_CODED: Final = rf"""_n=$(exec wc -c <"$1"); printf 'b%d\n' $_n; _t=$((_n - {HEAD_BYTES}))
[ $_t -lt {TAIL_BYTES} ] || _t={TAIL_BYTES}
if [ $_t -gt 0 ]; then {{ head -c {HEAD_BYTES} "$1"; tail -c $_t "$1"; }} | base64; else base64 <"$1"; fi"""
_SAY: Final = {
    "bash": f"""if {is_plain(_TEXT)}; then printf 't%s' "$_v"; else {_CODED}
fi""",
    "sh": f"""if [ -s "$1" ]; then {_CODED}
fi""",
}


class TextCommand(NamedTuple):
    """The script to send, its mark, and the separator of the answer."""

    script: str
    mark: str  # for kit.kill
    nonce: str


def wrap(command: Command, shell: str, env: Mapping[str, str], *, inside: bool = False) -> TextCommand:
    """The program around a command. ``inside``: the text is for ``shell`` itself, without another shell."""
    # The nonce has a second half besides the mark: a list of the shell's variables contains no marker.
    first_half, second_half = new_mark(), new_mark()
    files, remove = _FILES[shell]
    program = _RUN.replace("@FILES@", files).replace("@SAY@", _SAY[shell]).replace("@REMOVE@", remove)
    script = quoted(command.script)
    feed, stdin, heredoc, bodies = "", "/dev/null", "", ""
    if command.stdin:
        feed, stdin = f"base64 -d <<'{first_half}' | ", "&0"
        bodies += f"{base64.encodebytes(command.stdin).decode()}{first_half}\n"
    if len(command.script) > _ARGUMENT:
        program, script = f'set -- "$(cat <&3)" "$2" "$3"; exec 3<&-; {program}', "''"
        heredoc = f" 3<<'{second_half}'"
        bodies += f"{command.script}\n{second_half}\n"
    exports = "".join(f"export {name}={quoted(value)}\n" for name, value in {**env, MARK: first_half}.items())
    if inside:
        run = f"{{ set -- {script} {first_half} {second_half}; eval {quoted(program)}; }}"
    else:
        run = f"{shell} -c {quoted(program)} {shell} {script} {first_half} {second_half}"
    run = f"{feed}{run} 4<{stdin} 2>/dev/null{heredoc}\n{bodies}"
    return TextCommand(exports + run, first_half, first_half + second_half)


def read(answer: str, nonce: str) -> ExecResult | None:
    """The command's result, or None if the program did not end.

    Raises:
        ExecFailed: the program did not print this answer: a command can find the nonce, and forge an answer.
    """
    _, marker, rest = answer.partition(nonce)
    code, _, rest = rest.partition("\n")
    parts = rest.split(f"\n{nonce}\n")
    if not marker or len(parts) != 4:
        return None
    try:
        (out, out_dropped), (err, err_dropped) = _decoded(parts[0]), _decoded(parts[1])
        ended_ns = epoch_ns(parts[2][:LONGEST].encode())
        return ExecResult(
            _number(code),
            out,
            err,
            stdout_dropped=out_dropped,
            stderr_dropped=err_dropped,
            wrapper_ended_ns=ended_ns,
        )
    except ValueError:
        raise ExecFailed("the command's answer is garbled: the shell program prints no such text") from None


def _decoded(text: str) -> tuple[bytes, int]:
    """The content of a stream, and the number of bytes dropped. Raises ``ValueError``."""
    kind, body = text[:1], text[1:]
    if kind == "t":
        return body.encode("ascii"), 0
    if kind:
        length, _, digits = body.partition("\n")
        content = base64.b64decode("".join(digits.split()), validate=True)
        if kind == "b" and len(content) <= _number(length):
            return content, _number(length) - len(content)
    elif not body:
        return b"", 0
    raise ValueError(f"no such kind: {kind!r}")


def _number(text: str) -> int:
    """A file's length at most. Raises ``ValueError``."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise ValueError("not a number")
    return int(text)
