"""The output of a framed shell's command between markers, on two streams or merged.

bash stores the text of a here-document in an unlinked temporary file; at compatibility level 50 also a short text. A
merged command writes to this file through ``/proc/self/fd``. No program has to remove the file, and a surviving process
of the command cannot reach the files of the next command. The file has the mode 0400: only root may write. Ordinary
users and POSIX shells need named files.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from taxtui.sandboxes.kit.kept_output import HEAD_BYTES, TAIL_BYTES, KeptOutput, exec_result
from taxtui.sandboxes.protocol import ExecResult

# The clock of taxtui's own shell wrappers: begin and end of the outermost wrapper, in the sandbox's wall-clock time.
# Each wrapper's first statement is ``BEGIN``. A subshell inherits the variable, and the innermost program, the runner's
# in-sandbox timer, prints the variable with two more times. The wrapper's last line of output ends with ``NOW``.
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


STDOUT: Final = 1
STDERR: Final = 2
LAST_LINE: Final = 3 + 1 + LONGEST
"""Bytes at most between an end marker and the end of the line: the exit code, a colon, the wrapper's end."""


class SplitFrames:
    """Both streams of a command, each between markers."""

    def __init__(self, begin: str, end: str) -> None:
        self._begin, self._end = begin, end
        self._frames = {channel: _between(begin, end) for channel in (STDOUT, STDERR)}

    @property
    def complete(self) -> bool:
        return self._frames[STDOUT].complete and self._frames[STDERR].complete

    def subshell(self, command: str, *, stdin: str) -> str:
        """The subshell's program for ``command``, after the first markers."""
        begin = f"printf '%s%s{{' {_halves(self._begin)}"
        return f"{begin}; {begin} >&3; exec {stdin} 2>&3 3>&-; {command}\n"

    def shell(self, then: str = "") -> str:
        """The shell's program after the subshell exited with ``$_r``: print the last markers, then run ``then``."""
        end = f"printf '%s%s}}%d:%s\\n' {_halves(self._end)} $_r \"{NOW}\""
        return f"{end} >&3; {end}\n{then}"

    def feed(self, channel: int, chunk: bytes) -> None:
        self._frames[channel].feed(chunk)

    def result(self) -> ExecResult:
        last = self._frames[STDOUT]  # the shell prints this marker last
        assert last.exit_code is not None
        return exec_result(last.exit_code, last.output(), self._frames[STDERR].output(), last.wrapper_ended_ns)


# bash: set $_o and $_e to the paths of two new, empty, unlinked files. They are not usable without /proc, and if a
# here-document is a pipe. CLOSED hides the files from the command, once the streams are open.
_UNLINKED: Final = r"""BASH_COMPAT=50 eval "exec 8<<<'' 9<<<''"; _o=/proc/self/fd/8; _e=/proc/self/fd/9"""
_USABLE: Final = "[[ -f $_o && -w $_o && -f $_e && -w $_e ]]"
_CLOSED: Final = "8<&- 9<&-"

# A file is ``t`` and printable text without line ends and tabs, or ``b``, the length, a point and base64; ``=.`` ends
# both. In the text, ``=e`` is an equals sign, ``=n`` a line end, ``=t`` a tab. Of a larger file only the beginning and
# the end are printed, and only the bytes present at the start, because a background process may write on.
_SAY_TEXT: Final = r"_v=${_v//=/=e}; _v=${_v//$'\n'/=n}; _v=${_v//$'\t'/=t}; " + """printf 't%s' "$_v\""""
_SAY_BASE64: Final = (
    f'_l=$(exec wc -c <"$1"); printf "b%d." $_l; _t=$((_l - {HEAD_BYTES})); '
    f"[ $_t -lt {TAIL_BYTES} ] || _t={TAIL_BYTES}; "
    f'if [ $_t -gt 0 ]; then head -c {HEAD_BYTES} "$1"; tail -c $_t "$1"; else head -c $_l "$1"; fi | base64'
)
_DIGITS: Final = 18  # of any file's length
_TEXT_BYTES: Final = 8192  # of more, base64 is faster than bash
# ``read`` fails at the end of the file: the whole file was read, and no byte is NUL. LC_ALL=C counts bytes.
_PLAIN: Final = rf"""! IFS= read -rd '' -n {_TEXT_BYTES} _v <"$1" && [[ $_v != *[^$'\t\n'\ -~]* ]]"""
_NAMED: Final = (
    '_d=$(mktemp -d "${TMPDIR:-/tmp}/session.XXXXXX"); trap \'rm -rf "$_d"\' EXIT; _f=0; _o=$_d/o; _e=$_d/e; '
    '_taxtui_files() { : >"$_o"; : >"$_e"; _f=$((_f + 1)); _o=$_d/o$_f; _e=$_d/e$_f; '
    '[ $((_f % 50)) -gt 0 ] || rm -f "$_d"/*; }'  # empty files of 50 commands at once: rm is a process
)
BASH: Final = (
    f"_taxtui_files() {{ {_UNLINKED}; }}; _taxtui_files; {_USABLE} || {{ {_NAMED}; }}; "
    f"_taxtui_say() {{ local LC_ALL=C _v; if {_PLAIN}; then {_SAY_TEXT}; "
    f"else {_SAY_BASE64}; fi; printf =.; }}"
)
"""The program of bash before the first command."""
SH: Final = f'{_NAMED}; _taxtui_say() {{ if [ -s "$1" ]; then {_SAY_BASE64}; else printf t; fi; printf =.; }}'


class MergedFrames:
    """Both outputs on a single stream: the command writes to two files, and the shell then prints the files.

    The stream is a terminal, and some forwarders of terminals repair UTF-8 or line ends. Therefore
    only printable characters encode the command's output.
    """

    PROLOGUE: Final = 'if [ -n "$BASH_VERSION" ]; then eval \'' + BASH.replace("'", "'\\''") + f"'; else {SH}; fi; "
    """The program of either shell before the first command."""

    def __init__(self, begin: str, end: str) -> None:
        self._begin, self._end = begin, end
        self._streams = _Unmerged()
        self._frame = _between(begin, end, self._streams)

    @property
    def complete(self) -> bool:
        return self._frame.complete

    def subshell(self, command: str, *, stdin: str) -> str:
        """The subshell's program for ``command``, without the shell's trap."""
        return f'exec {stdin} >"$_o" 2>"$_e" 3>&- {_CLOSED}; trap - EXIT; {command}\n'

    def shell(self, then: str = "_taxtui_files\n") -> str:
        """The shell's program after the subshell exited with ``$_r``: print both files between the markers.

        ``then``: a last line, by default new files. A surviving process of the command has the old files.
        """
        return (
            f'printf \'%s%s{{\' {_halves(self._begin)}; _taxtui_say "$_o"; _taxtui_say "$_e"; '
            f"printf '%s%s}}%d:%s\\n' {_halves(self._end)} $_r \"{NOW}\"\n{then}"
        )

    def feed(self, channel: int, chunk: bytes) -> None:
        self._frame.feed(chunk)

    def result(self) -> ExecResult:
        assert self._frame.exit_code is not None
        return exec_result(self._frame.exit_code, *self._streams.ended(), self._frame.wrapper_ended_ns)


def _halves(nonce: str) -> str:
    """A nonce as two words: an echo of the program does not look like the marker."""
    middle = len(nonce) // 2
    return f"{nonce[:middle]} {nonce[middle:]}"


_NOT_PRINTABLE: Final = bytes(set(range(256)) - set(range(0x20, 0x7F)))
"""Line ends of base64, and bytes inserted by a terminal."""
_ESCAPED: Final = {b"=e": b"=", b"=n": b"\n", b"=t": b"\t"}


class _Unmerged:
    """Both files as the shell prints them, decoded on arrival."""

    def __init__(self) -> None:
        self._streams = KeptOutput(), KeptOutput()
        self._complete = 0  # streams
        self._kind = b""  # of the next stream; empty before the arrival
        self._length = 0  # of the file
        self._waiting = b""  # not decoded yet

    def add(self, data: bytes | bytearray | memoryview) -> None:
        """The next bytes. Raises ``ValueError`` for bytes from elsewhere than the shell program."""
        self._waiting += bytes(data).translate(None, _NOT_PRINTABLE)
        while self._waiting:
            if self._complete == len(self._streams):
                raise ValueError("more than two streams")
            if not self._kind and not self._begin():
                return
            end = self._waiting.find(b"=.")
            # Four digits of base64 belong together, and so do "=" and the next character.
            length = end if end >= 0 else max(0, len(self._waiting) - 2) // 4 * 4
            if self._kind == b"t" and end < 0:
                length = len(self._waiting) - self._waiting.endswith(b"=")
            self._streams[self._complete].add(self._decoded(self._waiting[:length]))
            self._waiting = self._waiting[length + 2 * (end >= 0) :]
            if end < 0:
                return
            if self._kind == b"b":
                self._streams[self._complete].lack(self._length)
            self._complete, self._kind = self._complete + 1, b""

    def _begin(self) -> bool:
        """Take the kind of a stream, and the length of a file in base64; False if more bytes are needed."""
        kind, rest = self._waiting[:1], self._waiting[1:]
        if kind == b"b":
            digits, point, rest = rest.partition(b".")
            if len(digits) > _DIGITS or (point and not digits.isdigit()):
                raise ValueError("no length")
            if not point:
                return False
            self._length = int(digits)
        self._kind, self._waiting = kind, rest
        return True

    def _decoded(self, text: bytes) -> bytes:
        if self._kind == b"b":
            return base64.b64decode(text, validate=True)
        if self._kind != b"t":
            raise ValueError("neither text nor base64")
        return re.sub(b"=.?", lambda escape: _unescaped(escape[0]), text) if b"=" in text else text

    def ended(self) -> tuple[KeptOutput, KeptOutput]:
        """Both streams. Raises ``ValueError``: a stream is missing."""
        if self._complete < len(self._streams):
            raise ValueError("a stream is missing")
        return self._streams


def _unescaped(escape: bytes) -> bytes:
    if escape not in _ESCAPED:
        raise ValueError("no such character")
    return _ESCAPED[escape]


def last_line(text: bytes | bytearray) -> tuple[int, int]:
    """The exit code after an end marker, and when the wrapper ended, or ``UNKNOWN``. Raises ``ValueError``.

    A command can print a forged marker.
    """
    code, _, ended = bytes(text).partition(b":")
    if len(text) > LAST_LINE or len(code) > 3 or not code.isdigit():
        raise ValueError("no exit code")
    return int(code), epoch_ns(ended)


class MarkedOutput:
    """The bytes of a stream between two markers, in chunks of any size; ``code:time\\n`` follows the second."""

    def __init__(self, begin: bytes, end: bytes, payload: _Unmerged | None = None) -> None:
        """``begin``: empty if the bytes begin with the stream."""
        self._begin, self._end = begin, end
        self._buffer = bytearray()
        self._begun = self.complete = False
        self._payload = payload or KeptOutput()
        self.exit_code: int | None = None
        self.wrapper_ended_ns = UNKNOWN

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream; each is searched once, but for a marker's length.

        Raises ``ValueError`` where no exit code follows the end marker at once.
        """
        if self.complete:
            return
        self._buffer += chunk
        if not self._begun:
            at = self._buffer.find(self._begin)
            if at < 0:
                del self._buffer[: max(0, len(self._buffer) - len(self._begin))]
                return
            del self._buffer[: at + len(self._begin)]
            self._begun = True
        at = self._buffer.find(self._end)
        safe = at if at >= 0 else max(0, len(self._buffer) - len(self._end))  # not part of a marker
        self._payload.add(self._buffer[:safe])
        del self._buffer[:safe]
        if at < 0:
            return
        line, line_end, _ = self._buffer[len(self._end) :].partition(b"\n")
        if line_end or len(line) > LAST_LINE:
            self.exit_code, self.wrapper_ended_ns = last_line(line)
            self.complete = True
            self._buffer.clear()

    def output(self) -> KeptOutput:
        """The bytes of the stream after the last ``feed``, also without an end marker."""
        assert isinstance(self._payload, KeptOutput)
        self._payload.add(self._buffer)
        self._buffer.clear()
        return self._payload


def _between(begin: str, end: str, payload: _Unmerged | None = None) -> MarkedOutput:
    return MarkedOutput(f"{begin}{{".encode(), f"{end}}}".encode(), payload)
