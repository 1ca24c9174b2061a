"""Byte streams for tests of the framed shell: real shells without a substrate, and chunks that are cut at will."""

from __future__ import annotations

import asyncio
import os
import pty
import shutil
from collections.abc import Callable

from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.kit.shell.framed_shell import ENDED, launch_argv
from taxtui.sandboxes.kit.shell.frames import STDOUT


def shell_process(argv: list[str] | None = None, **env: str) -> Process:
    """A real shell on pipes."""
    argv = argv or launch_argv()
    return Process([shutil.which(argv[0]) or argv[0], *argv[1:]], {"PATH": os.environ["PATH"], **env}, stdin=True)


def posix_argv() -> list[str]:
    """The launcher as it runs where there is no bash: the second driver, in sh."""
    *_, sh_driver = launch_argv()
    return ["sh", "-c", sh_driver]


class CutStream:
    """Delivers another stream's bytes in chunks whose lengths a test chooses."""

    def __init__(self, inner: Process, length: Callable[[], int]) -> None:
        self._inner = inner
        self._length = length
        self._left: tuple[int, bytes] = (ENDED, b"")
        self.write = inner.write
        self.close = inner.close

    async def read(self) -> tuple[int, bytes]:
        channel, data = self._left
        if not data:
            channel, data = await self._inner.read()
        cut = max(1, self._length())
        self._left = (channel, data[cut:])
        return channel, data[:cut]


class TerminalStream:
    """A program on a real pseudo-terminal: one stream for all, echo and line discipline as they come."""

    def __init__(self, argv: list[str]) -> None:
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.execvp(argv[0], argv)
        os.set_blocking(self._fd, False)
        self._closed = False

    async def read(self) -> tuple[int, bytes]:
        while not self._closed:
            try:
                return STDOUT, os.read(self._fd, 65536)
            except BlockingIOError:
                await asyncio.sleep(0.001)
            except OSError:  # EIO: the program has gone
                break
        return ENDED, b""

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                await asyncio.sleep(0.001)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            os.killpg(self._pid, 9)
            os.close(self._fd)
            os.waitpid(self._pid, 0)  # noqa: ASYNC222  # just killed
