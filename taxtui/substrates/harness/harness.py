"""The base class of substrates for harnesses; each harness adds the start of a sandbox."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from typing import ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import CreateFailed, Throttled
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import with_cleanup
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.harness.harnessed import HarnessedSandbox, Sites

AT_ONCE: Final = 64
"""Sandboxes at a time. Each may occupy two threads: by a command, and by a start or an end."""


class HarnessSubstrate(ABC):
    """Sandboxes by one harness."""

    name: ClassVar[str]
    Options: ClassVar[type[msgspec.Struct]]
    package: ClassVar[str]
    """The installed harness."""

    provenance: Literal["measured", "stand_in"] = "measured"

    def __init__(
        self, variant: str, *, bash: bool, idempotent: bool, confirms_gone: bool = True, paid: bool = False
    ) -> None:
        """``variant``: the harness's environment."""
        self.variant = variant
        # No deadline: only taxtui removes leftovers of a harness. No sessions: a harness has none.
        self.capabilities = Capabilities(
            idempotent_create=idempotent,
            confirms_gone=confirms_gone,
            bash=bash,
            paid=paid,
            modes=("exec",),
            max_concurrency=AT_ONCE,
        )
        self.pool = BlockingPool(2 * AT_ONCE, self.name)
        self.sites = self.choose()

    @abstractmethod
    def choose(self) -> Sites:
        """The kind of the sandboxes' sites."""

    @abstractmethod
    async def begin(self, spec: SandboxSpec, env: dict[str, str], marks: Marks) -> HarnessedSandbox:
        """Start a sandbox by the harness. Raises ``CreateFailed``. A cancellation removes the remains."""

    async def __aenter__(self) -> Self:
        """Open the sites. Raises ``SubstrateUnavailable``."""
        await self.sites.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Wait for calls under way."""
        await self.pool.__aexit__(*exc)

    async def check(self) -> Availability:
        """As ``Substrate.check``."""
        availability = await self.sites.check()
        if not availability.ok:
            return availability
        package_version = version(self.package)
        return msgspec.structs.replace(
            availability,
            detail=f"ready, {self.package} {package_version}, {availability.detail}",
            version=" ".join(filter(None, (self.package, package_version, availability.version))),
            facts={**availability.facts, "harness": f"{self.package} {package_version}"},
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> HarnessedSandbox:
        """As ``Substrate.create``: returns when the harness reports the start."""
        env = await self.sites.add(spec)
        try:
            sandbox = await self.begin(spec, env, marks)
        except (CreateFailed, Throttled) as error:
            raise await with_cleanup(self.sites.remove(spec.name), error) from error.__cause__
        marks("started")
        return sandbox

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``."""
        return await self.sites.find(run_id)

    async def reap(self, entry: Found) -> None:
        """As ``Substrate.reap``: without the harness, because a harness knows only the sandboxes of this process."""
        await self.sites.remove(entry.name)
