"""The directories that local sandboxes are: furnished, emptied, and removed with what runs in them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from taxtui.errors import CleanupFailed, ExecFailed
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.deletion import delete
from taxtui.sandboxes.kit.limits import Limiter
from taxtui.substrates.local import bubblewrap as local_bwrap
from taxtui.substrates.local import disk

_FOLDERS: Final = ("work", "home", "tmp")


class SandboxFolders:
    """The folders of this user's sandboxes; a limiter holds each to its limits."""

    def __init__(self, root: Path, limiter: Limiter, pool: BlockingPool, *, isolated: bool) -> None:
        """``isolated``: what runs in them is bubblewrap's; ``pool``: where files are deleted."""
        self.root = root
        self.limiter = limiter
        self.pool = pool
        self.isolated = isolated

    def furnish(self, folder: Path) -> None:
        """Blocking: make the folders that a sandbox may write to, empty."""
        for name in _FOLDERS:
            delete(folder / name)
            (folder / name).mkdir()
            if self.isolated:
                local_bwrap.hand_over(folder / name)

    async def remove(self, name: str) -> None:
        """Kill what runs in a sandbox, take its limits down, delete its files. Raises ``CleanupFailed``."""
        await self.limiter.kill(name)
        await self.limiter.remove(name)
        folder = self.root / name
        try:
            await finish_despite_cancel(self.pool.run(lambda: _delete(folder)))
        except ExecFailed as error:
            raise CleanupFailed(f"{name}: its directory is still being deleted: {error}") from error
        if folder.exists():
            raise CleanupFailed(f"{name}: its directory cannot be deleted")


def _delete(folder: Path) -> None:
    disk.released(folder)
    delete(folder)
