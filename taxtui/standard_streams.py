"""Standard streams of the process: open, and writable when the reader has gone."""

from __future__ import annotations

import errno
import io
import os
import sys

from taxtui.errors import WriteFailed


class Output(io.TextIOWrapper):
    """Standard output or error. Without a reader (head, less) the command continues to its exit code."""

    def write(self, text: str) -> int:
        try:
            return super().write(text) if text != "" else 0  # click tests streams so; a full device refuses even this
        except OSError as error:
            self._discard(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._discard(error)

    def _discard(self, error: OSError) -> None:
        """Discard all further output. Raises ``WriteFailed``, unless the reader or the terminal has gone."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise WriteFailed(f"cannot write standard output: {error.strerror}") from error


def prepare() -> None:
    """Open closed streams, so that no file gets their descriptors, and replace output and error."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, f"__{name}__", os.fdopen(number, "w" if number else "r", closefd=False))
        stream = getattr(sys, f"__{name}__")
        if number:  # a locale may lack a character, and a file name may be no UTF-8
            options = {"line_buffering": stream.line_buffering, "write_through": stream.write_through}
            stream = Output(stream.buffer, encoding=stream.encoding, errors="replace", **options)
        setattr(sys, name, stream)
