"""A child process with pipes in the event loop: the base of every action on this machine.

Started by ``posix_spawn`` and watched by a pidfd, at about half the cost of asyncio's subprocesses.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from taxtui.errors import ExecFailed, SandboxLost
from taxtui.sandboxes.kit.kept_output import KeptOutput
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, outputs
from taxtui.sandboxes.kit.shell.frames import STDERR, STDOUT

_CHUNK: Final = 1 << 18
_PIPE_MAX: Final = 1 << 20  # largest pipe without privilege on Linux
_READ_AHEAD: Final = 4 << 20  # unread bytes; beyond this limit the child waits
_OWN_GROUP: Final[dict[str, Any]] = {"setsid": True} if sys.platform == "linux" else {"setpgroup": 0}
_NO_INPUT: Final = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
_DEFAULTS: Final = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
"""A command begins with the signals of a fresh login, even if Python, nohup or a background job ignores some."""


class Process:
    """A running child, leader of a new process group; a ``ByteStream``.

    The stream ends when the child itself has exited and all output is delivered. A background process with open pipes
    does not delay the end.
    """

    def __init__(
        self,
        argv: list[str],
        env: Mapping[str, str],
        *,
        stdin: bool,
        program: str = "",
    ) -> None:
        """Start ``argv``; standard input is a pipe or /dev/null. ``program``: the path to execute, by default
        ``argv[0]``. Raises ``ExecFailed``.
        """
        self.returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._chunks = asyncio.Queue[tuple[int, bytes]]()
        self._ahead = 0
        self._outgoing = bytearray()
        self._end_input = False
        self._stdin = -1
        self._outputs: dict[int, int] = {}  # our end of a pipe → channel
        theirs: list[int] = []
        _keep_foreign_descriptors()
        try:
            self._stdin = _pipe(theirs, writing=True) if stdin else -1
            self._outputs[_pipe(theirs)] = STDOUT
            self._outputs[_pipe(theirs)] = STDERR
            self.pid = os.posix_spawn(
                program or argv[0],
                argv,
                env,
                file_actions=[
                    *(() if stdin else (_NO_INPUT,)),
                    *((os.POSIX_SPAWN_DUP2, fd, 3 - len(theirs) + at) for at, fd in enumerate(theirs)),
                ],
                setsigdef=_DEFAULTS,
                setsigmask=(),
                **_OWN_GROUP,
            )
        except (OSError, ValueError) as error:
            for fd in (self._stdin, *self._outputs):
                if fd >= 0:
                    os.close(fd)
            raise ExecFailed(f"cannot start {argv[0]}: {error}") from error
        finally:
            for fd in theirs:
                os.close(fd)
        self._resume()
        self._exit_fd = self._watch_exit()

    # -- reading ------------------------------------------------------------------------------------------------

    async def read(self) -> tuple[int, bytes]:
        if self.returncode is not None and self._chunks.empty():
            return ENDED, b""
        channel, chunk = await self._chunks.get()
        if self._ahead > _READ_AHEAD >= self._ahead - len(chunk):
            self._resume()
        self._ahead -= len(chunk)
        return channel, chunk

    async def output(self) -> tuple[KeptOutput, KeptOutput]:
        """Stdout and stderr, once the child has exited."""
        return await outputs(self)

    def _resume(self) -> None:
        for fd in self._outputs:
            self._loop.add_reader(fd, self._take, fd)

    def _take(self, fd: int) -> bool:
        """Read a chunk; False if the pipe is empty now."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._loop.remove_reader(fd)
            os.close(fd)
            del self._outputs[fd]
            return False
        self._chunks.put_nowait((self._outputs[fd], chunk))
        self._ahead += len(chunk)
        if self._ahead > _READ_AHEAD:
            for output in self._outputs:
                self._loop.remove_reader(output)
        return True

    # -- writing ------------------------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        if self._stdin < 0:
            raise SandboxLost("the shell no longer reads")
        self.feed(data)

    def feed(self, data: bytes, *, end: bool = False) -> None:
        """Send ``data`` as fast as the child reads, then close standard input if ``end``."""
        self._outgoing += data
        self._end_input |= end
        self._writable()

    def _writable(self) -> None:
        if self._stdin < 0:
            return
        try:
            del self._outgoing[: os.write(self._stdin, self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:  # the command has closed standard input, as in any pipe
            self._outgoing.clear()
            self._end_input = True
        if self._outgoing:
            self._loop.add_writer(self._stdin, self._writable)
            return
        self._loop.remove_writer(self._stdin)
        if self._end_input:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin >= 0:
            self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
            self._stdin = -1

    # -- ending -------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL to the whole process group, unless the child has exited."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        """As ``ByteStream.close``: returns when the child is reaped and the pipes are closed."""
        self.kill()
        while self.returncode is None:
            await self.read()

    def _watch_exit(self) -> int:
        """Have ``_exited`` called in the loop once the child is a zombie; returns the watched descriptor or -1."""
        with contextlib.suppress(AttributeError, OSError):  # on macOS, and at the limit of descriptors
            fd = os.pidfd_open(self.pid)
            self._loop.add_reader(fd, self._exited)
            return fd

        def wait() -> None:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._exited)

        threading.Thread(target=wait, daemon=True).start()
        return -1

    def _exited(self) -> None:
        """Reap the child, read the rest of the pipes, close the pipes."""
        if self._exit_fd >= 0:
            self._loop.remove_reader(self._exit_fd)
            os.close(self._exit_fd)
        status = os.waitpid(self.pid, 0)[1]
        for fd in tuple(self._outputs):
            # The output of the child itself fits one pipe. A background process may write without an end.
            for _ in range(_PIPE_MAX // _CHUNK):
                if not self._take(fd):
                    break
        code = os.waitstatus_to_exitcode(status)
        self.returncode = code if code >= 0 else 128 - code
        self._close_stdin()
        for fd in self._outputs:
            self._loop.remove_reader(fd)
            os.close(fd)
        self._outputs.clear()
        self._chunks.put_nowait((ENDED, b""))


@functools.cache
def _keep_foreign_descriptors() -> None:
    """Have exec close inherited descriptors above 2.

    ``posix_spawn`` passes descriptors on, and bubblewrap closes none: a sandbox could read files of taxtui's caller.
    Exec closes Python's later descriptors, so once per process is enough.
    """
    try:
        descriptors = [int(path.name) for path in Path("/dev/fd").iterdir()]
    except OSError:  # no such folder on this platform, or no /proc
        descriptors = list(range(os.sysconf("SC_OPEN_MAX")))
    for descriptor in descriptors:
        if descriptor > 2:
            with contextlib.suppress(OSError):  # not open: the listing's own
                os.set_inheritable(descriptor, False)


def _pipe(theirs: list[int], *, writing: bool = False) -> int:
    """A new pipe: the child's end is added to ``theirs``, our own non-blocking end is returned."""
    reader, writer = os.pipe()
    ours, child = (writer, reader) if writing else (reader, writer)
    os.set_blocking(ours, False)
    theirs.append(child)
    return ours
