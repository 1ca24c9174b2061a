"""The folders of this user that taxtui writes to, each said once: recordings, runs to clean up, caches.

``XDG_DATA_HOME``, ``XDG_STATE_HOME`` and ``XDG_CACHE_HOME`` hold on every platform, where they are absolute; without
them the place is the platform's own.
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
"""Run ids name folders, sandboxes and labels: no separators, no wildcards, never empty."""


def require_run_id(run_id: str, source: str) -> str:
    """Return a run id that is one. Raises ``UsageError``, which names the ``source`` and quotes nothing."""
    if re.search(RUN_ID_PATTERN, run_id) is None:
        raise UsageError(f"{source}: its run id is not one", fix="a run id has 1 to 40 of 0-9, a-z and -")
    return run_id


def recordings() -> Path:
    """``./recordings`` where there is one, else the user's own, made where it is missing. Raises ``UsageError``."""
    here = Path("recordings")
    if here.is_dir():
        return here
    folder = _user(platformdirs.user_data_path) / "recordings"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot create {folder}: {error.strerror}", fix="name the recording with -o") from error
    return folder


def new_recording(run_id: str) -> Path:
    """Where the recording of a run goes that was given no name. Raises ``UsageError``."""
    return recordings() / f"{run_id}.msgpack"


def new_run_id() -> str:
    """One that no other run has, and that sorts by time."""
    return f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime())}-{secrets.token_hex(4)}"


def ledger() -> Path:
    """What is kept of runs until they are swept clean; need not exist. Raises ``UsageError``: the user has no home."""
    return _user(platformdirs.user_state_path) / "runs"


def cache() -> Path:
    """What can be made again; need not exist. Raises ``UsageError``: the user has no home."""
    return _user(platformdirs.user_cache_path)


def _user(folder_of: Callable[[str], Path]) -> Path:
    try:
        return folder_of("taxtui")
    except RuntimeError as error:  # says which variable to set
        raise UsageError(str(error)) from error
