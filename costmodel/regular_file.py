"""Open files that other people made: only regular ones, and no more of them than a limit.

A repository or an archive of job logs may contain a link to ``/dev/zero`` or a named pipe. A device has no end, and a
pipe without a writer blocks for ever. Links to regular files are followed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def open_regular(path: Path, most: int | None = None, *, buffered: bool = True) -> BinaryIO:
    """Open a regular file of at most ``most`` bytes for reading; never blocks.

    Raises:
        OSError: the file cannot be opened, is no regular file, or is larger. ``strerror`` says which.
    """
    _require(path, path.stat(), most)  # before opening: to open some devices has an effect
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _require(path, os.fstat(descriptor), most)  # it may have been replaced in between
        return os.fdopen(descriptor, "rb", -1 if buffered else 0)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int) -> bytes:
    """Read a whole regular file of at most ``most`` bytes. Raises ``OSError`` as ``open_regular``."""
    with open_regular(path, most) as file:
        content = file.read(most + 1) or b""  # None where a file of /proc has nothing yet
    if len(content) > most:  # such files, and growing ones, are larger than their size says
        raise OSError(errno.EFBIG, too_large(most), str(path))
    return content


def too_large(most: int) -> str:
    """Name the limit: ``larger than 32 MiB``."""
    return f"larger than {most >> 20} MiB"


def _require(path: Path, status: os.stat_result, most: int | None) -> None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise OSError(errno.EINVAL, f"{kind}, not a regular file", str(path))
    if most is not None and status.st_size > most:
        raise OSError(errno.EFBIG, too_large(most), str(path))
