"""Open untrusted files: regular files only, up to a maximum size.

A repository or an archive of job logs may contain a link to ``/dev/zero`` or a named pipe. A device has no end, and a
pipe without a writer blocks forever. Links to regular files are followed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path, max_bytes: int | None = None, *, buffered: bool = True) -> BinaryIO:
    """Open a regular file of at most ``max_bytes`` for reading; never blocks.

    Raises:
        OSError: the file is unreadable, not regular, or larger; ``strerror`` names the reason.
    """
    _require(path, path.stat(), max_bytes)  # before opening: opening a device may have an effect
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _require(path, os.fstat(descriptor), max_bytes)  # the file may have been replaced
        return os.fdopen(descriptor, "rb", -1 if buffered else 0)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Read a whole regular file of at most ``max_bytes``. Raises ``OSError`` as ``open_regular``."""
    with open_regular(path, max_bytes) as file:
        content = file.read(max_bytes + 1) or b""  # None: an empty file of /proc
    if len(content) > max_bytes:  # files of /proc and growing files exceed their reported size
        raise OSError(errno.EFBIG, too_large(max_bytes), str(path))
    return content


def too_large(max_bytes: int) -> str:
    """Name the limit: ``larger than 32 MiB``."""
    return f"larger than {max_bytes >> 20} MiB"


def _require(path: Path, status: os.stat_result, max_bytes: int | None) -> None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if max_bytes is not None and status.st_size > max_bytes:
        raise OSError(errno.EFBIG, too_large(max_bytes), str(path))
