"""A limit for the files of a local sandbox: a file system of a given size in memory.

A folder has no quota, and bubblewrap's own file systems end with each command. taxtui, as root, mounts a file system
next to the sandbox's record until the removal. A removal looks for the mount with any options.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

_NAME: Final = "disk"
_NO_SETUID_NO_DEVICES: Final = 2 | 4
_NOW_AND_HERE: Final = 2 | 8  # MNT_DETACH: only open files remain; UMOUNT_NOFOLLOW
_FILES_PER_MIB: Final = 256
"""A file per page: empty files are limited too."""
_PROBE_MIB: Final = 1


def limited(folder: Path, size_mib: int) -> Path:
    """Blocking: a folder inside this one with a size limit. Raises ``OSError``."""
    inner = folder / _NAME
    inner.mkdir()
    mount_options = f"size={size_mib}m,nr_inodes={_FILES_PER_MIB * size_mib},mode=0755"
    kernel = ctypes.CDLL(None, use_errno=True)
    if kernel.mount(
        b"taxtui", os.fsencode(inner), b"tmpfs", ctypes.c_ulong(_NO_SETUID_NO_DEVICES), mount_options.encode()
    ):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return inner


def released(folder: Path) -> None:
    """Blocking: unmount the folder's file system, if any; after a failure the folder stays too."""
    inner = folder / _NAME
    while os.path.ismount(inner):
        if ctypes.CDLL(None).umount2(os.fsencode(inner), _NOW_AND_HERE):
            return


@functools.cache
def complaint() -> str:
    """The reason why no sandbox can have a limit here, by a trial; "" without one."""
    if sys.platform != "linux":
        return "disk_mib needs Linux"
    with tempfile.TemporaryDirectory(prefix="taxtui-probe-") as name:
        try:
            limited(Path(name), _PROBE_MIB)
        except OSError as error:
            return f"disk_mib needs root, who may mount a file system: {error.strerror}"
        released(Path(name))
    return ""
