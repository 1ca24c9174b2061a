"""What all containers of one kind have in common on this machine."""

from __future__ import annotations

from typing import NamedTuple

from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.limits import Limiter
from taxtui.substrates.machine.root import Root
from taxtui.substrates.machine.store import Store


class Host(NamedTuple):
    """What they are made from, what holds them to their limits, where they are kept, and where files are worked on."""

    root: Root
    limiter: Limiter
    store: Store
    pool: BlockingPool

    async def forget(self, name: str) -> None:
        """Kill what the limits still hold of one, and delete its folder. Raises ``CleanupFailed``."""
        await self.limiter.kill(name)
        await self.limiter.remove(name)
        await finish_despite_cancel(self.pool.run(lambda: self.store.remove(name)))
