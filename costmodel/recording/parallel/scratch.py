"""Bytes that may never be asked for again, out of memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import IO


class Scratch:
    """A file without a name: it goes with whoever held the last of its bytes, however that ends."""

    __slots__ = ("_end", "_file")

    def __init__(self) -> None:
        """With nothing in it, and no file yet."""
        self._file: IO[bytes] | None = None
        self._end = 0

    def put(self, data: bytes) -> Callable[[], bytes]:
        """What gives them back, in a forked process too; they stay in memory where the disk is full."""
        try:
            self._file = file = self._file or _file()
            written = os.pwrite(file.fileno(), data, self._end)
        except OSError:
            return partial(bytes, data)
        if written < len(data):
            return partial(bytes, data)
        start, self._end = self._end, self._end + written
        return partial(self._get, start, written)

    def _get(self, start: int, count: int) -> bytes:
        assert self._file is not None
        return os.pread(self._file.fileno(), count, start)

    def __del__(self) -> None:
        """Nobody asks any more."""
        if self._file is not None:
            self._file.close()


def _file() -> IO[bytes]:
    from tempfile import TemporaryFile  # most never need one

    return TemporaryFile()
