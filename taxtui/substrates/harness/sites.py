"""Access to a harness's sandboxes without the harness: list them, kill their processes, remove them.

A harness waits for a command that it has begun, and forgets its sandboxes when it dies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.protocol import Availability, Found


class Site(ABC):
    """The site of one sandbox."""

    @abstractmethod
    async def kill(self, mark: str) -> None:
        """Kill what has this mark in it. Raises ``ExecFailed``, ``CleanupFailed``."""

    @abstractmethod
    async def ended(self) -> bool:
        """Whether nothing can run in it any more."""

    @abstractmethod
    async def remove(self) -> None:
        """Remove it with all that runs in it. Idempotent. Raises ``CleanupFailed``."""


class Surroundings(NamedTuple):
    """The surroundings of a command in one sandbox."""

    env: dict[str, str]  # of a container when it is made, of a folder's commands all that there is
    folder: str = ""  # to run in; "" where the place has its own
    prologue: str = ""  # of every script, as ``Limiter.prepare`` says


class Sites(ABC):
    """All of one harness and one kind."""

    @abstractmethod
    async def open(self) -> None:
        """Get ready to make some. Raises ``SubstrateUnavailable``."""

    @abstractmethod
    async def check(self) -> Availability:
        """Whether this kind of site can be used; the detail names no harness. Never raises."""

    @abstractmethod
    async def add(self, spec: SandboxSpec) -> Surroundings:
        """Make what a new one needs before its harness begins. Raises ``CreateFailed``."""

    @abstractmethod
    def at(self, name: str) -> Site:
        """The one of this name, which may not exist."""

    @abstractmethod
    async def find(self, run_id: str | None) -> Sequence[Found]:
        """All of one run or of all runs. Raises ``SubstrateUnavailable``."""
