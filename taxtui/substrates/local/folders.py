"""The directories that local sandboxes are: furnished, emptied, and removed with what runs in them."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from taxtui.errors import CleanupFailed, ExecFailed
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.framed_shell import unbroken
from taxtui.sandboxes.kit.limits import Limiter
from taxtui.substrates.local import bubblewrap as local_bwrap

_FOLDERS: Final = ("work", "home", "tmp")


class SandboxFolders:
    """Of this user's sandboxes, each of which a limiter holds to its limits."""

    def __init__(self, root: Path, limiter: Limiter, pool: BlockingPool, *, isolated: bool) -> None:
        """``isolated``: what runs in them is bubblewrap's; ``pool``: where files are deleted."""
        self.root = root
        self.limiter = limiter
        self.pool = pool
        self.isolated = isolated

    def furnish(self, folder: Path) -> None:
        """Blocking: make the folders that a sandbox may write to, empty."""
        for name in _FOLDERS:
            _delete(folder / name)
            (folder / name).mkdir()
            if self.isolated:
                local_bwrap.hand_over(folder / name)

    async def remove(self, name: str) -> None:
        """Kill what runs in a sandbox, take its limits down, delete its files. Raises ``CleanupFailed``."""
        await self.limiter.kill(name)
        await self.limiter.remove(name)
        folder = self.root / name
        try:
            await unbroken(self.pool.run(lambda: _delete(folder)))
        except ExecFailed as error:
            raise CleanupFailed(f"{name}: its directory is still being deleted: {error}") from error
        if folder.exists():
            raise CleanupFailed(f"{name}: its directory cannot be deleted")


def _delete(folder: Path) -> None:
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
