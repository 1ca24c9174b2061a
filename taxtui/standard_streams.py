"""Standard streams of the process: open, and writable when the reader has gone."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable

from taxtui.errors import WriteFailed


class Output(io.TextIOWrapper):
    """Standard output or error. Without a reader (head, less) the command continues to its exit code."""

    def write(self, text: str) -> int:
        if text != "":  # click tests streams so, and a full device refuses even this
            self._try(super().write, text)
        return len(text)

    def flush(self) -> None:
        self._try(super().flush)

    def _try(self, call: Callable[..., object], *arguments: str) -> None:
        try:
            call(*arguments)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if error.errno not in (errno.EPIPE, errno.EIO) and self.fileno() == 1:  # not of a closed reader
                raise WriteFailed(f"cannot write standard output: {error.strerror}") from error


def prepare() -> None:
    """Open closed streams, so that no file gets their descriptors, and replace output and error."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
        if number:  # a locale may lack a character, and a file name may be no UTF-8
            old = getattr(sys, name)
            buffering = {"line_buffering": old.line_buffering, "write_through": old.write_through}
            setattr(sys, f"__{name}__", old)  # else its end would close the buffer
            setattr(sys, name, Output(old.buffer, encoding=old.encoding, errors="replace", **buffering))
