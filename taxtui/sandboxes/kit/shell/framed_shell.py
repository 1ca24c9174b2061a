"""The framed persistent shell behind every ``session`` mode, over any stream of bytes.

A small program in the sandbox's own shell (:func:`launch_argv`) keeps a subshell ready for the next command: no command
waits for a fork. The subshell takes a frame, evaluates the text and exits; the shell itself takes the next frame, and
so on in turns. The subshell's frame prints a marker on both streams and runs the command. The shell's frame prints a
marker after the command, with the exit code::

    client → subshell ": 000000214 000000001
" + that many bytes of shell, on that many lines
    client → shell    ": 000000107 000000001
" + likewise
    shell → client    … noise … BEGIN{ the command's own bytes END}0:1700000000.123456


The time after the exit code is the time of the print, by bash's own clock: :mod:`taxtui.sandboxes.kit.shell.frames`.

Both nonces are new for each command and are sent in two halves, so neither an echo of the frames nor a print of the
shell's variables looks like a marker. Output between two commands, for example of a background process, is dropped.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, Self, cast

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, kill_then_timeout, with_cleanup
from taxtui.sandboxes.kit.kept_output import KeptOutput
from taxtui.sandboxes.kit.shell.frames import BEGIN, STDOUT, MergedFrames, SplitFrames
from taxtui.sandboxes.protocol import ExecResult

ENDED: Final = 0
"""Tag of the end of a :meth:`ByteStream.read`."""

OPEN_TIMEOUT_S: Final = 60.0
_PRINTED_BYTES: Final = 16_384

# bash reads exactly the announced bytes with a few large reads; without `read -N` (bash < 4.1, other shells) the
# same frame is taken line by line, a byte per system call. LC_ALL is only looked at while the driver starts.
_HEADER_BYTES: Final = 22
_BASH_TAKES: Final = f"IFS= read -rN{_HEADER_BYTES} _n && IFS= read -rN$((10#${{_n:2:9}})) _c"
_SH_TAKES: Final = (
    "read -r _n _b _k && { _c=; _k=${_k#${_k%%[1-9]*}}; "
    'while [ "${_k:-0}" -gt 0 ] && IFS= read -r _n; do _c="$_c$_n\n"; _k=$((_k - 1)); done; }'
)


def _driver(takes: str) -> str:
    """The shell's and the subshells' frames in turns; a test of a subshell would disable a command's ``set -e``."""
    return f'while {takes}; do eval "$_c"; ( {takes} || exit; eval "$_c" ); _r=$?; done'


_BASH_DRIVER: Final = (
    f'if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 401 )); then eval "$1"; exit; fi; {_driver(_BASH_TAKES)}'
)
_SH_DRIVER: Final = _driver(_SH_TAKES)
_LAUNCHER: Final = (
    'if command -v bash >/dev/null 2>&1; then exec bash --norc --noprofile -c "$1" bash "$2"; fi; exec sh -c "$2" sh'
)


def launch_argv() -> list[str]:
    """The program for the provider to start; its standard streams are the :class:`ByteStream`."""
    return ["sh", "-c", _LAUNCHER, "sh", _BASH_DRIVER, _SH_DRIVER]


class Streams(Protocol):
    """The streams of a running program."""

    async def read(self) -> tuple[int, bytes]:
        """The next chunk and its channel: ``STDOUT`` (also for merged streams) or ``STDERR``.

        ``(ENDED, b"")`` when the program or the connection is gone. May be cancelled without losing bytes.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Send all of ``data`` to standard input. Raises ``SandboxLost``."""
        ...


class ByteStream(Streams, Protocol):
    """The streams of a running program, and a way to end the program. Substrates with sessions implement it."""

    async def close(self) -> None:
        """Kill the program with all processes, and close the connection. Idempotent."""
        ...


async def outputs(stream: Streams) -> tuple[KeptOutput, KeptOutput]:
    """Stdout and stderr of a program, read to their end."""
    out, err = KeptOutput(), KeptOutput()
    while (item := await stream.read())[0] != ENDED:
        (out if item[0] == STDOUT else err).add(item[1])
    return out, err


async def _unexplained(error: SubstrateError) -> SubstrateError:
    return error


class FramedShell:
    """A ``protocol.Session`` over any :class:`ByteStream`. One command at a time."""

    def __init__(
        self,
        stream: Streams,
        *,
        merged: bool = False,
        end: Callable[[], Coroutine[Any, Any, None]] | None = None,
        explain: Callable[[SubstrateError], Awaitable[SubstrateError]] = _unexplained,
        silent: bool = False,
    ) -> None:
        """The shell of :func:`launch_argv` behind ``stream``.

        Args:
            stream: the shell's streams.
            merged: the stream mixes stdout and stderr; files in the sandbox separate them.
            end: replaces the ``close`` of the stream, for example by a kill of all processes; called once.
            explain: returns the end of the sandbox as the cause of an error, or the same error.
            silent: the connection does not report the sandbox's end, so a timeout may have this cause.
        """
        self._stream = stream
        self._stop = end or cast(ByteStream, stream).close
        self._merged = merged
        self._explain = explain
        self._silent = silent
        self._closed = False
        self._prologue = _framed(_prologue(merged))  # sent with the first command

    async def open(self, timeout_s: float = OPEN_TIMEOUT_S) -> Self:
        """Wait for the first answer of the shell; on failure the stream is closed.

        Raises:
            ExecTimeout, SandboxLost: no answer.
        """
        await self.exec(Command(script=":", timeout_s=timeout_s))
        return self

    async def exec(self, command: Command) -> ExecResult:
        """Run a command in a subshell. After a timeout or a cancellation the session is closed.

        Raises:
            ExecTimeout: the command was killed with all processes of this session.
            ExecFailed: the answer is not the shell's; the session is closed.
            SandboxLost: the session was closed, or the command ended the shell itself.
        """
        return await self._exchange(command)

    async def only(self, command: Command) -> ExecResult:
        """Run a command and exit the shell, in a single exchange; replaces ``open`` and ``exec``.

        The owner of the stream ends it. Raises as ``exec``.
        """
        return await self._exchange(command, epilogue="exit\n")

    async def close(self) -> None:
        """End the shell with all processes. Idempotent."""
        try:
            await self._end()
        except ExecFailed as error:
            if not isinstance(await self._explain(error), SandboxLost):
                raise

    async def _end(self) -> None:
        if not self._closed:
            self._closed = True
            await finish_despite_cancel(self._stop())

    async def _exchange(self, command: Command, epilogue: str = "") -> ExecResult:
        try:
            return await self._answered(command, epilogue)
        except (SandboxLost, ExecFailed) as error:
            if isinstance(error, ExecTimeout) and not self._silent:
                raise
            explained = await self._explain(error)
            if explained is error:
                raise
            raise explained from error

    async def _answered(self, command: Command, epilogue: str) -> ExecResult:
        if self._closed:
            raise SandboxLost("the session is closed")
        nonces = secrets.token_hex(16), secrets.token_hex(16)
        frames = MergedFrames(*nonces) if self._merged else SplitFrames(*nonces)
        evaluated, stdin, fed = _evaluated(command, merged=self._merged)
        shell = frames.shell(epilogue) if epilogue else frames.shell()
        subshell = f"{BEGIN}; {frames.subshell(evaluated, stdin=stdin)}"
        sent = self._prologue + _framed(subshell) + fed + _framed(shell)
        self._prologue = b""
        try:
            async with asyncio.timeout(command.timeout_s):
                await self._stream.write(sent)
                while not frames.complete:
                    channel, chunk = await self._stream.read()
                    if channel == ENDED:
                        raise SandboxLost("the session's shell ended")  # the handler closes
                    frames.feed(channel, chunk)
            return frames.result()
        except ValueError:  # a command can read the shell's input, with the nonce, and print a marker itself
            garbled = ExecFailed("the session's answer is garbled; the session is closed")
            raise await with_cleanup(self._end(), garbled) from None
        except TimeoutError:
            raise await kill_then_timeout(self._end(), command.timeout_s, "; its session is closed") from None
        except BaseException as error:
            await with_cleanup(self._end(), error)
            raise


def farewell(line: str) -> bytes:
    """The input for a last line of an idle shell; no marker follows."""
    return _framed("\n") + 2 * _framed(f"{line}\n")


def _framed(body: str) -> bytes:
    data = body.encode("ascii")
    return b": %09d %09d\n" % (len(data), data.count(b"\n")) + data


def _prologue(merged: bool) -> str:
    """Descriptor 3 becomes the real stderr; 2 is silenced, where the shell would comment on killed subshells."""
    return f"exec 3>&2 2>/dev/null; {MergedFrames.PROLOGUE if merged else ''}:\n"


def _evaluated(command: Command, *, merged: bool) -> tuple[str, str, bytes]:
    """A subshell's command, its redirection of standard input, and the bytes after its frame.

    A merged stream sends a large standard input in base64 after the frame: a shell evaluates long programs slowly.
    """
    run = f"eval {quoted(command.script)}"
    if not command.stdin:
        return run, "</dev/null", b""
    if not merged or len(command.stdin) <= _PRINTED_BYTES:
        return f"printf '{_printf_escaped(command.stdin)}' | {run}", "", b""
    fed = base64.b64encode(command.stdin)  # the shell takes all bytes, also bytes left unread by the command
    decoded = f"{{ base64 -d 2>/dev/null | {run}; _r=$?; cat >/dev/null; exit $_r; }}"
    return f"head -c {len(fed)} | {decoded}", "", fed


def quoted(script: str) -> str:
    """A script as a single word of ASCII for any POSIX shell, in any locale and through any terminal."""
    if script.isascii() and "\r" not in script and "\0" not in script:
        return "'" + script.replace("'", "'\\''") + "'"
    return f"\"$(printf '{_printf_escaped(script.encode())}')\""


# Also a hyphen: printf takes a leading hyphen for an option.
_PRINTF: Final = [
    chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in "\\%'-" else f"\\{byte:03o}" for byte in range(256)
]


def _printf_escaped(data: bytes) -> str:
    return "".join(map(_PRINTF.__getitem__, data))
