"""Sandboxes of a harness as folders of this machine: no isolation, and the best available limits."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from taxtui.plan.spec import FIXTURES_ENV, SandboxSpec
from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.kill import MARK, kill_marked
from taxtui.sandboxes.kit.limits import SANDBOX_ENV, Limiter, best_limiter
from taxtui.sandboxes.protocol import Availability, Found
from taxtui.substrates.harness.sites import Sites, Surroundings
from taxtui.workloads import fixtures

_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class HarnessFolders(Sites):
    """A private folder, with a subfolder for each sandbox."""

    def __init__(self, kind: str, pool: BlockingPool) -> None:
        """``kind``: the harness's name; ``pool``: for file operations."""
        self.kind = kind
        self.pool = pool
        self.root: Path
        self.limiter: Limiter
        self._fixtures: Path | None = None

    async def open(self) -> None:
        """As ``Sites.open``."""
        self.root = private_folder.private_folder(self.kind, self.kind)
        self.limiter = await best_limiter()
        self._fixtures = await self.pool.run(fixtures.cached)

    async def check(self) -> Availability:
        """As ``Sites.check``."""
        limits = (await best_limiter()).label
        return Availability(
            ok=True,
            detail=f"on this machine: no isolation, limits: {limits}",
            cache="node",
            limits=limits,
            facts={"kernel": platform.release()},
        )

    async def add(self, spec: SandboxSpec) -> Surroundings:
        """As ``Sites.add``: the folders of local sandboxes, too."""
        folder = private_folder.make(self.root, spec)
        try:
            for name in ("work", "home", "tmp"):
                (folder / name).mkdir()
        except OSError as error:
            raise private_folder.not_made(spec, error) from error
        env = {
            "PATH": os.environ.get("PATH", _PATH),
            "LANG": "C.UTF-8",
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            **({FIXTURES_ENV: str(self._fixtures)} if self._fixtures else {}),
            **spec.env,
            SANDBOX_ENV: spec.name,
        }
        prologue = self.limiter.prepare(spec.name, spec.limits)
        return Surroundings(env, str(folder / "work"), prologue)

    async def kill(self, name: str, mark: str) -> None:
        await kill_marked(f"{MARK}={mark}")

    async def ended(self, name: str) -> bool:
        return not (self.root / name / "work").is_dir()

    async def remove(self, name: str) -> None:
        await self.limiter.kill(name)
        await kill_marked(f"{SANDBOX_ENV}={name}")
        await self.limiter.remove(name)
        await private_folder.remove(self.root / name, self.pool)

    async def find(self, run_id: str | None) -> Sequence[Found]:
        """As ``Sites.find``."""
        return private_folder.found_in(self.root, run_id)
