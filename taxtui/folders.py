"""The user's folders for new files: recordings, ledger and cache; and the ids of runs.

Absolute paths in ``XDG_DATA_HOME``, ``XDG_STATE_HOME`` and ``XDG_CACHE_HOME`` apply on every platform; otherwise the
platform has default folders.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import platformdirs

from taxtui.errors import UsageError

RUN_ID_PATTERN: Final = r"^[0-9a-z-]{1,40}\Z"
"""A run id names folders, sandboxes and labels, so separators, wildcards and the empty text are not allowed."""


def require_run_id(run_id: str, source: str) -> str:
    """Return a valid run id. Raises ``UsageError`` with the ``source`` of a bad id, and without the id."""
    if re.search(RUN_ID_PATTERN, run_id) is None:
        raise UsageError(f"{source}: the run id is not valid", fix="a run id has 1 to 40 of 0-9, a-z and -")
    return run_id


def recordings() -> Path:
    """Return ``./recordings`` if the folder exists, else create the user's folder. Raises ``UsageError``."""
    local = Path("recordings")
    if local.is_dir():
        return local
    folder = _user(platformdirs.user_data_path) / "recordings"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot create {folder}: {error.strerror}", fix="name the recording with -o") from error
    return folder


def new_recording(run_id: str) -> Path:
    """Return the path of a recording without a name. Raises ``UsageError``."""
    return recordings() / f"{run_id}.msgpack"


def new_run_id() -> str:
    """Return a unique id, sorted by time."""
    return f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime())}-{secrets.token_hex(4)}"


def ledger() -> Path:
    """Return the folder of runs to clean up, which may be missing. Raises ``UsageError``: the user has no home."""
    return _user(platformdirs.user_state_path) / "runs"


def cache() -> Path:
    """Return the folder of reproducible files, which may be missing. Raises as ``ledger``."""
    return _user(platformdirs.user_cache_path)


def _user(folder_of: Callable[[str], Path]) -> Path:
    try:
        return folder_of("taxtui")
    except RuntimeError as error:  # the text has the variable to set
        raise UsageError(str(error)) from error
