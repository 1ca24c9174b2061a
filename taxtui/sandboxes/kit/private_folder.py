"""The folder in which this user's sandboxes on this machine are kept."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from taxtui.errors import SubstrateUnavailable


def private_folder(substrate: str, kind: str = "") -> Path:
    """One that nobody else may have prepared or can look into; ``kind`` tells those of several substrates apart.

    Raises:
        SubstrateUnavailable: it is there, and somebody else's or open to others.
    """
    folder = Path(tempfile.gettempdir()) / "-".join(filter(None, ("taxtui", kind, str(os.getuid()))))
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SubstrateUnavailable(f"{substrate}: {folder} is not a private folder of yours", fix="remove it")
    return folder
