"""The base class of substrates that measure a harness; each harness adds how it makes a sandbox."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import CreateFailed, Throttled
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import with_cleanup
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.harness.harnessed import HarnessedSandbox
from taxtui.substrates.harness.sites import Sites, Surroundings

AT_ONCE: Final = 64
"""Sandboxes; each may have a command under way, and beside that one that starts or ends."""


class HarnessSubstrate(ABC):
    """Sandboxes by one harness."""

    name: ClassVar[str]
    Options: ClassVar[type[msgspec.Struct]]
    package: ClassVar[str]
    """The installed harness."""
    flavours: ClassVar[tuple[Mapping[str, str], ...]] = ()
    """Options of each of its environments, for a clean-up without options."""

    provenance: Literal["measured", "stand_in"] = "measured"

    def __init__(
        self, variant: str, *, bash: bool, idempotent: bool, confirms_gone: bool = True, paid: bool = False
    ) -> None:
        """``variant``: which of the harness's environments; nothing is looked for yet."""
        self.variant = variant
        # No deadline: only taxtui removes what a harness's run has left. No sessions: a harness has none.
        self.capabilities = Capabilities(
            idempotent_create=idempotent,
            confirms_gone=confirms_gone,
            bash=bash,
            paid=paid,
            modes=("exec",),
            max_concurrency=AT_ONCE,
        )
        self.pool = BlockingPool(2 * AT_ONCE, self.name)
        self.places = self.choose()

    @abstractmethod
    def choose(self) -> Sites:
        """The kind of place where its sandboxes run."""

    @abstractmethod
    async def begin(self, spec: SandboxSpec, around: Surroundings, marks: Marks) -> HarnessedSandbox:
        """Have the harness start one. Raises ``CreateFailed``, or is cancelled: then what there is, is removed."""

    async def __aenter__(self) -> Self:
        """See that sandboxes can be made. Raises ``SubstrateUnavailable``."""
        await self.places.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Wait for calls under way."""
        await self.pool.__aexit__(*exc)

    async def check(self) -> Availability:
        """As ``Substrate.check``."""
        found = await self.places.check()
        if not found.ok:
            return found
        ours = version(self.package)
        return msgspec.structs.replace(
            found,
            detail=f"ready, {self.package} {ours}, {found.detail}",
            version=" ".join(filter(None, (self.package, ours, found.version))),
            facts={**found.facts, "harness": f"{self.package} {ours}"},
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> HarnessedSandbox:
        """As ``Substrate.create``: returns when the harness says that it has started."""
        around = await self.places.add(spec)
        try:
            sandbox = await self.begin(spec, around, marks)
        except (CreateFailed, Throttled) as error:
            raise await with_cleanup(self.places.at(spec.name).remove(), error) from error.__cause__
        marks("started")
        return sandbox

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``."""
        return await self.places.find(run_id)

    async def reap(self, found: Found) -> None:
        """As ``Substrate.reap``: beside the harness, which knows nothing of other processes'."""
        await self.places.at(found.name).remove()
