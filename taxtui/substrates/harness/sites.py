"""Access to a harness's sandboxes without the harness: list them, kill their processes, remove them.

A harness waits for a running command, and a dead harness knows no sandboxes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.protocol import Availability, Found


class Sites(ABC):
    """All sites of a harness and a kind."""

    @abstractmethod
    async def open(self) -> None:
        """Open clients and folders. Raises ``SubstrateUnavailable``."""

    @abstractmethod
    async def check(self) -> Availability:
        """Whether this kind of site can be used; the detail names no harness. Never raises."""

    @abstractmethod
    async def add(self, spec: SandboxSpec) -> dict[str, str]:
        """Prepare a new sandbox before the harness begins; return its environment. Raises ``CreateFailed``."""

    @abstractmethod
    async def kill(self, name: str, mark: str) -> None:
        """Kill the processes of a sandbox with this mark. Raises ``ExecFailed``, ``CleanupFailed``."""

    @abstractmethod
    async def ended(self, name: str) -> bool:
        """Whether no command can run in a sandbox any more."""

    @abstractmethod
    async def remove(self, name: str) -> None:
        """Remove a sandbox with all processes. Idempotent. Raises ``CleanupFailed``."""

    @abstractmethod
    async def find(self, run_id: str | None) -> Sequence[Found]:
        """All sandboxes of a run or of all runs. Raises ``SubstrateUnavailable``."""
