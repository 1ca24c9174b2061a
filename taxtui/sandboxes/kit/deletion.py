"""Deleting a folder in which a sandbox could do as it liked."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def delete(folder: Path) -> None:
    """Blocking: also what the sandbox has made unwritable for itself, and however deep it is nested.

    What stands two levels down is moved up before its folder is removed: no path grows, nothing recurses, and a link
    is only ever unlinked.
    """
    if folder.is_dir() and not folder.is_symlink():
        with contextlib.suppress(OSError):  # whatever stays is told by whoever asked
            _unlock(folder)
            while entries := _entries(folder):
                if not sum(_lift_or_unlink(folder, entry) for entry in entries):
                    return
            folder.rmdir()


def _lift_or_unlink(folder: Path, entry: os.DirEntry[str]) -> bool:
    """Remove an entry, of a folder's content after it has been moved up to ``folder``; whether that got anywhere.

    What vanishes meanwhile is the work of another clean-up of the same sandbox: the engine, the watchdog and a sweep
    may meet, and all of them get there.
    """
    path = Path(entry.path)
    try:
        if not entry.is_dir(follow_symlinks=False):
            path.unlink(missing_ok=True)
            return True
        _unlock(path)
        for inner in _entries(path):
            with contextlib.suppress(FileNotFoundError):
                if inner.is_dir(follow_symlinks=False):
                    _unlock(Path(inner.path))  # its entry for the folder above changes with the move
                    Path(inner.path).rename(folder / secrets.token_hex(16))
                else:
                    Path(inner.path).unlink()
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return list(found)


def _unlock(folder: Path) -> None:
    folder.chmod(0o700)
