"""A sandbox that checks of what commands do share, where making one takes longer than most of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Self, cast

from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.conformance import Check, checks
from taxtui.sandboxes.conformance.bench import SPEC_ENV
from taxtui.sandboxes.kit.kill import new_mark
from taxtui.sandboxes.kit.labels import LABEL_DEADLINE, LABEL_RUN
from taxtui.sandboxes.protocol import Found, Marks, Sandbox, Substrate
from tests.support.conformance import SHARING

TTL_S = 3600.0


def lends(check: Check) -> bool:
    """Whether the check may be given a sandbox that others have used."""
    return check.name in SHARING


LENDING = [check for check in checks() if lends(check)]
KEEPING = [check for check in checks() if not lends(check)]
"""All checks: those that share a sandbox, and those that have sandboxes of their own."""


class Lent:
    """The substrate as a check sees it: ``create`` gives the one sandbox, which whoever has made it ends."""

    def __init__(self, substrate: Substrate, sandbox: Sandbox) -> None:
        """Both are in use already; the substrate stays entered."""
        self._substrate, self._sandbox = substrate, sandbox

    def __getattr__(self, name: str) -> object:
        """Everything else is the substrate's."""
        return getattr(self._substrate, name)

    async def __aenter__(self) -> Self:
        """Nothing: it is entered."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing: others go on with it."""

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        """The one that there is."""
        return self._sandbox

    async def find(self, run_id: str) -> list[Found]:
        """Of the check's own run there is nothing."""
        return []


@contextlib.asynccontextmanager
async def lent(substrate: Substrate, acquire: str = "create") -> AsyncIterator[Substrate]:
    """Enter the substrate, and make the sandbox as a check would; it is destroyed in the end, and found no more."""
    run_id = f"c{new_mark()[:10]}"
    spec = SandboxSpec(
        name=f"taxtui-{run_id}-1",
        labels={LABEL_RUN: run_id, LABEL_DEADLINE: "2000000000"},
        limits=Limits(),
        ttl_s=TTL_S,
        acquire=acquire,
        env=SPEC_ENV,
    )
    async with substrate:
        sandbox = await substrate.create(spec, Marks())
        try:
            await sandbox.wait_ready(Marks())
            yield cast(Substrate, Lent(substrate, sandbox))
        finally:
            await sandbox.destroy()
        assert await substrate.find(run_id) == []
