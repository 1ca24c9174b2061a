"""Where a harness's sandboxes stand, seen from beside the harness: found, emptied of processes and removed without it.

A harness waits for a command that it has begun, and forgets what it made when it dies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.protocol import Availability, Found


class Site(ABC):
    """One of them."""

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
    """What a command of one sandbox has around it."""

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
        """What there is, of this kind; a detail that says so without the harness. Never raises."""

    @abstractmethod
    async def add(self, spec: SandboxSpec) -> Surroundings:
        """Make what a new one needs before its harness begins. Raises ``CreateFailed``."""

    @abstractmethod
    def at(self, name: str) -> Site:
        """The one of this name, which may not exist."""

    @abstractmethod
    async def find(self, run_id: str | None) -> Sequence[Found]:
        """All of one run or of all runs. Raises ``SubstrateUnavailable``."""
