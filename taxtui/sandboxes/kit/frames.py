"""What a framed shell's command prints, found between its markers: two streams, or one that merges both."""

from __future__ import annotations

import base64
import string
from typing import Final, Protocol

from taxtui.sandboxes.kit.kept_output import KeptOutput, exec_result
from taxtui.sandboxes.protocol import ExecResult

STDOUT: Final = 1
STDERR: Final = 2


class SplitFrames:
    """Both streams of one command, each between its markers."""

    def __init__(self, begin: str, end: str) -> None:
        """``begin`` and ``end`` are the nonces of the two markers."""
        self._begin, self._end = begin, end
        self._frames = {STDOUT: _Frame(begin, end), STDERR: _Frame(begin, end)}

    @property
    def complete(self) -> bool:
        """Whether all has come that the command prints, and its exit code."""
        return self._frames[STDOUT].complete and self._frames[STDERR].complete

    def subshell(self, command: str, *, stdin: str) -> str:
        """The program of the subshell that is to run ``command``, behind its first markers."""
        begin = f"printf '%s%s{{' {_halves(self._begin)}"
        return f"{begin}; {begin} >&3; exec {stdin} 2>&3 3>&-; {command}\n"

    def shell(self) -> str:
        """What the shell does once that has exited with ``$_r``: it prints the last markers."""
        end = f"printf '%s%s}}%d\\n' {_halves(self._end)} $_r"
        return f"{end} >&3; {end}\n"

    def feed(self, channel: int, chunk: bytes) -> None:
        """Take the next bytes of ``channel``."""
        self._frames[channel].feed(chunk)

    def result(self) -> ExecResult:
        """What a complete command printed."""
        out, err = (self._frames[channel].payload for channel in (STDOUT, STDERR))
        assert isinstance(out, KeptOutput)
        assert isinstance(err, KeptOutput)
        return exec_result(self._frames[STDOUT].exit_code, out, err)


class MergedFrames:
    """One stream for both: the command writes to two files; then come the first one's length and both, in base64.

    Such a stream is a terminal, and what forwards terminals need not be clean for all bytes: some repair UTF-8.
    """

    def __init__(self, begin: str, end: str) -> None:
        """``begin`` and ``end`` are the nonces of the two markers."""
        self._begin, self._end = begin, end
        self._streams = _Unmerged()
        self._frame = _Frame(begin, end, self._streams)

    @property
    def complete(self) -> bool:
        """Whether all has come that the command prints, and its exit code."""
        return self._frame.complete

    def subshell(self, command: str, *, stdin: str) -> str:
        """The program of the subshell that is to run ``command``. It must not see the shell's trap."""
        return f'exec {stdin} >"$_d/o" 2>"$_d/e" 3>&-; trap - EXIT; {command}\n'

    def shell(self) -> str:
        """What the shell does once that has exited with ``$_r``: it prints all of it between the markers."""
        # A process that the command left running keeps an unlinked file, and can't reach the next command's.
        # Each process that is left out is a millisecond of every command.
        return (
            '_o=0; [ ! -s "$_d/o" ] || _o=$(wc -c <"$_d/o"); '
            f"printf '%s%s{{%d\n' {_halves(self._begin)} $_o; "
            '[ $_o = 0 ] && [ ! -s "$_d/e" ] || '
            '{ [ $_o = 0 ] || head -c $_o "$_d/o"; [ ! -s "$_d/e" ] || cat "$_d/e"; } | base64; '
            f"printf '%s%s}}%d\n' {_halves(self._end)} $_r; "
            'rm -f "$_d/o" "$_d/e"\n'
        )

    def feed(self, channel: int, chunk: bytes) -> None:
        """Take the next bytes of ``channel``."""
        self._frame.feed(chunk)

    def result(self) -> ExecResult:
        """What a complete command printed."""
        return exec_result(self._frame.exit_code, *self._streams.ended())


def _halves(nonce: str) -> str:
    """As two words: what is sent must not look like the marker that is printed."""
    middle = len(nonce) // 2
    return f"{nonce[:middle]} {nonce[middle:]}"


_NOT_BASE64: Final = bytes(set(range(256)) - set(string.ascii_letters.encode() + string.digits.encode() + b"+/="))
"""Line ends, and whatever a terminal puts between."""


class _Unmerged:
    """The decimal length of the first stream, a line end, and both streams in base64, decoded as they come."""

    def __init__(self) -> None:
        self._streams = KeptOutput(), KeptOutput()
        self._line = bytearray()
        self._first_left = -1  # bytes that are still the first stream's; -1: its length has not come yet
        self._digits = bytearray()  # of base64, that are not decoded yet

    def add(self, data: bytes | bytearray | memoryview) -> None:
        """The next bytes. Raises ``ValueError`` where they are not what the shell program prints."""
        if self._first_left < 0:
            self._line += data
            line, found, data = bytes(self._line).partition(b"\n")
            if not found:
                return
            if not line.isdigit():
                raise ValueError("no length")
            self._first_left = int(line)
        self._digits += bytes(data).translate(None, _NOT_BASE64)
        self._decode(len(self._digits) // 4 * 4)

    def _decode(self, digits: int) -> None:
        both = base64.b64decode(self._digits[:digits])
        del self._digits[:digits]
        first = both[: self._first_left]
        self._first_left -= len(first)
        self._streams[0].add(first)
        self._streams[1].add(both[len(first) :])

    def ended(self) -> tuple[KeptOutput, KeptOutput]:
        """Both. Raises ``ValueError`` where something is missing."""
        if self._first_left < 0:
            raise ValueError("no length")
        self._decode(len(self._digits))
        return self._streams


class _Sink(Protocol):
    """Where the bytes of a frame go."""

    def add(self, data: bytes | bytearray | memoryview) -> None: ...


class _Frame:
    """What one stream carries between ``BEGIN{`` and ``END}code\\n``, however it is cut into chunks."""

    def __init__(self, begin: str, end: str, payload: _Sink | None = None) -> None:
        self._begin, self._end = f"{begin}{{".encode(), f"{end}}}".encode()
        self._buffer = bytearray()
        self._begun = self.complete = False
        self.payload: _Sink = payload or KeptOutput()
        self.exit_code = -1

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream; each is searched once, but for a marker's length."""
        self._buffer += chunk
        if not self._begun:
            at = self._buffer.find(self._begin)
            if at < 0:
                del self._buffer[: max(0, len(self._buffer) - len(self._begin))]
                return
            del self._buffer[: at + len(self._begin)]
            self._begun = True
        if self.complete:
            return
        at = self._buffer.find(self._end)
        safe = at if at >= 0 else max(0, len(self._buffer) - len(self._end))  # what can't be part of a marker
        self.payload.add(self._buffer[:safe])
        del self._buffer[:safe]
        line_end = self._buffer.find(b"\n") if at >= 0 else -1
        if line_end >= 0:
            self.exit_code = int(self._buffer[len(self._end) : line_end])
            self.complete = True
