"""The framed persistent shell behind every ``session`` mode, whatever carries its bytes.

A small program in the sandbox's own shell (:func:`launch_argv`) reads one frame per command and runs it in a
subshell. It prints a marker before and after, on both streams; the second one carries the exit code::

    client → shell    ": 000000214 000000001\n" + that many bytes of shell, on that many lines
    shell → client    … noise … NONCE{ the command's own bytes NONCE}0\n

The nonce is new for each command and is sent in two halves, so that neither an echo of the frame nor a command
that prints its shell's variables can look like a marker. What comes between two frames, such as the chatter of a
background process, belongs to nobody and is dropped.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from collections.abc import Coroutine
from typing import Any, Final, Protocol, TypeVar

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.frames import STDOUT, MergedFrames, SplitFrames
from taxtui.sandboxes.kit.kept_output import KeptOutput
from taxtui.sandboxes.protocol import ExecResult

ENDED: Final = 0
"""What :meth:`ByteStream.read` tags a chunk with."""

OPEN_TIMEOUT_S: Final = 60.0
_PRINTED_BYTES: Final = 16_384
UNBROKEN_S: Final = 60.0
"""How long a cancellation is held back at most. Clean-ups have timeouts of their own; this is for when they fail."""

# bash reads exactly the announced bytes with a few large reads; without `read -N` (bash < 4.1, other shells) the
# same frame is taken line by line, one byte per system call. LC_ALL is only looked at while the driver starts.
_HEADER_BYTES: Final = 22
_BASH_DRIVER: Final = (
    'if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 401 )); then eval "$1"; exit; fi; '
    f"while IFS= read -rN{_HEADER_BYTES} _n && IFS= read -rN$((10#${{_n:2:9}})) _c; "
    'do eval "$_c"; done'
)
_SH_DRIVER: Final = (
    "while read -r _n _b _k; do _c=; _k=${_k#${_k%%[1-9]*}}; "
    'while [ "${_k:-0}" -gt 0 ] && IFS= read -r _n; do _c="$_c$_n\n"; _k=$((_k - 1)); done; '
    'eval "$_c"; done'
)
_LAUNCHER: Final = (
    'if command -v bash >/dev/null 2>&1; then exec bash --norc --noprofile -c "$1" bash "$2"; fi; exec sh -c "$2" sh'
)
_RAW_TERMINAL: Final = "stty raw -echo 2>/dev/null; "


def launch_argv(*, terminal: bool = False) -> list[str]:
    """The program that a provider has to start, its standard streams being the :class:`ByteStream`.

    ``terminal``: the streams are one pseudo-terminal; it is switched to raw so that bytes pass unchanged.
    """
    return ["sh", "-c", (_RAW_TERMINAL if terminal else "") + _LAUNCHER, "sh", _BASH_DRIVER, _SH_DRIVER]


class ByteStream(Protocol):
    """A running program's streams, and the power to end it. What a substrate writes for its sessions."""

    async def read(self) -> tuple[int, bytes]:
        """The next chunk and where it came from: ``STDOUT`` (also for merged streams) or ``STDERR``.

        ``(ENDED, b"")`` when the program or the connection is gone. May be cancelled without losing bytes.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Send all of ``data`` to standard input. Raises ``SandboxLost``."""
        ...

    async def close(self) -> None:
        """Kill the program with all that it started, and let go. Idempotent."""
        ...


class Readable(Protocol):
    """The half of a :class:`ByteStream` that a program's output comes from."""

    async def read(self) -> tuple[int, bytes]:
        """As ``ByteStream.read``."""
        ...


async def outputs(stream: Readable) -> tuple[KeptOutput, KeptOutput]:
    """Stdout and stderr of a program, read to their end."""
    out, err = KeptOutput(), KeptOutput()
    while (item := await stream.read())[0] != ENDED:
        (out if item[0] == STDOUT else err).add(item[1])
    return out, err


class FramedShell:
    """A ``substrate.Session`` over any :class:`ByteStream`. One command at a time."""

    def __init__(self, stream: ByteStream, *, merged: bool = False) -> None:
        """``merged``: the stream can't tell stdout from stderr; they are parted through files in the sandbox."""
        self._stream = stream
        self._merged = merged
        self._closed = False

    @classmethod
    async def open(cls, stream: ByteStream, *, merged: bool = False, timeout_s: float = OPEN_TIMEOUT_S) -> FramedShell:
        """Wait until the shell that :func:`launch_argv` started has answered; on failure the stream is closed.

        Raises:
            ExecTimeout, SandboxLost: no answer.
        """
        shell = cls(stream, merged=merged)
        await shell._exchange("( : )", timeout_s, prologue=_framed(_prologue(merged)))
        return shell

    async def exec(self, command: Command) -> ExecResult:
        """Run one command in a subshell. After a timeout or a cancellation the session is closed.

        Raises:
            ExecTimeout: it was killed with everything that runs in this session.
            ExecFailed: what came back is no answer of the shell's; the session is closed.
            SandboxLost: the session was closed, or the command ended the shell itself.
        """
        body, fed = _subshell(command, merged=self._merged), _fed(command, merged=self._merged)
        return await self._exchange(body, command.timeout_s, epilogue=fed)

    async def only(self, command: Command) -> ExecResult:
        """Instead of ``open`` and ``exec``: the one command of a shell that exits after it, in one exchange.

        What ends the stream is up to its owner. Raises as ``exec``.
        """
        body, fed = _subshell(command, merged=self._merged), _fed(command, merged=self._merged)
        prologue = _framed(_prologue(self._merged))
        return await self._exchange(body, command.timeout_s, prologue=prologue, epilogue=fed + _framed("exit\n"))

    async def close(self) -> None:
        """End the shell and all that runs in it. Idempotent."""
        self._closed = True
        await unbroken(self._stream.close())

    async def _exchange(
        self, body: str, timeout_s: float, *, prologue: bytes = b"", epilogue: bytes = b""
    ) -> ExecResult:
        if self._closed:
            raise SandboxLost("the session is closed")
        halves = secrets.token_hex(8), secrets.token_hex(8)
        frames = MergedFrames(*halves) if self._merged else SplitFrames(*halves)
        try:
            async with asyncio.timeout(timeout_s):
                await self._stream.write(prologue + _framed(frames.wrap(body)) + epilogue)
                while not frames.complete:
                    channel, chunk = await self._stream.read()
                    if channel == ENDED:
                        raise SandboxLost("the session's shell ended")  # the handler closes
                    frames.feed(channel, chunk)
            return frames.result()
        except ValueError:  # a command can find its frame's nonce and print a marker itself
            garbled = ExecFailed("the session's answer is garbled; the session is closed")
            raise await after(self.close(), garbled) from None
        except TimeoutError:
            raise await overdue(self.close(), timeout_s, "; its session is closed") from None
        except BaseException as error:
            await after(self.close(), error)
            raise


_T = TypeVar("_T")
_E = TypeVar("_E", bound=BaseException)


async def after(ending: Coroutine[Any, Any, object], error: _E) -> _E:
    """``error``, once ``ending`` is done, unbroken; it says as well what went wrong with that."""
    try:
        await unbroken(ending)
    except SubstrateError as left:
        if not isinstance(error, SubstrateError):
            error.add_note(str(left))
        elif str(left) not in str(error):
            error.problem = f"{error.problem}; {left}"
    return error


async def unbroken(work: Coroutine[Any, Any, _T], within_s: float = UNBROKEN_S) -> _T:
    """Finish ``work`` even if the caller is cancelled meanwhile; the cancellation is passed on afterwards.

    Work that takes longer than ``within_s`` is cancelled itself and not waited for: nothing may hold a run for ever.

    Raises:
        ExecFailed: it took longer, and the caller was not cancelled.
    """
    task = asyncio.ensure_future(work)
    give_up = time.monotonic() + within_s
    cancelled: asyncio.CancelledError | None = None
    while not task.done() and (left_s := give_up - time.monotonic()) > 0:
        try:
            await asyncio.wait({task}, timeout=left_s)
        except asyncio.CancelledError as error:
            cancelled = error
    overdue = not task.done()
    if overdue:
        task.cancel()
    task.add_done_callback(_seen)
    if cancelled is not None:
        raise cancelled
    if overdue:
        raise ExecFailed(f"a clean-up was given up: it took longer than {within_s:g} s")
    return task.result()


def _seen(task: asyncio.Future[Any]) -> None:
    """Nobody may be left to be told of its error: the loop need not complain."""
    if not task.cancelled():
        task.exception()


async def overdue(ending: Coroutine[Any, Any, object], timeout_s: float, and_so: str = "") -> SubstrateError:
    """What to raise of a command that outlived its timeout, once ``ending``, unbroken, has killed it: ``ExecTimeout``.

    Where that failed nobody has killed it: ``ExecFailed``, or ``SandboxLost``, which says both.
    """
    try:
        await unbroken(ending)
    except SubstrateError as left:
        kind = SandboxLost if isinstance(left, SandboxLost) else ExecFailed
        return kind(f"the command had no end after {timeout_s:g} s; {left}")
    return ExecTimeout(f"the command was killed after {timeout_s:g} s{and_so}")


def _framed(body: str) -> bytes:
    data = body.encode("ascii")
    return b": %09d %09d\n" % (len(data), data.count(b"\n")) + data


def _prologue(merged: bool) -> str:
    """Descriptor 3 becomes the real stderr; 2 is silenced, where the shell would comment on killed subshells."""
    files = '_d=$(mktemp -d "${TMPDIR:-/tmp}/session.XXXXXX"); trap \'rm -rf "$_d"\' EXIT; ' if merged else ""
    return f"{files}exec 3>&2 2>/dev/null\n"


def _subshell(command: Command, *, merged: bool) -> str:
    untrapped = "trap - EXIT; " if merged else ""  # a command must not see the prologue's
    run = f"( {untrapped}eval {quoted(command.script)} )"
    if not command.stdin:
        return f"{run} </dev/null"
    if fed := _fed(command, merged=merged):  # all of it is taken, whatever the command reads
        return f"head -c {len(fed)} | {{ base64 -d 2>/dev/null | {run}; _r=$?; cat >/dev/null; ( exit $_r ); }}"
    return f"printf '{_printf_escaped(command.stdin)}' | {run}"


def _fed(command: Command, *, merged: bool) -> bytes:
    """Standard input that follows its frame because it is large: a shell takes its time to read what it evaluates.

    In base64, by which a merged stream brings the output back as well.
    """
    return base64.b64encode(command.stdin) if merged and len(command.stdin) > _PRINTED_BYTES else b""


def quoted(script: str) -> str:
    """A script as one word of ASCII for any POSIX shell, whatever its locale or the terminal in between."""
    if script.isascii() and "\r" not in script and "\0" not in script:
        return "'" + script.replace("'", "'\\''") + "'"
    return f"\"$(printf '{_printf_escaped(script.encode())}')\""


# Also a hyphen: a format that begins with one is taken for an option.
_PRINTF: Final = [
    chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in "\\%'-" else f"\\{byte:03o}" for byte in range(256)
]


def _printf_escaped(data: bytes) -> str:
    return "".join(map(_PRINTF.__getitem__, data))
