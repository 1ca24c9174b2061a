"""A sandbox that checks of what commands do share, where making one takes longer than all of them."""

from __future__ import annotations

from typing import Self

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.protocol import Found, Marks, Sandbox, Substrate
from tests.support.conformance import COMMANDS


def lends(check: Check) -> bool:
    """Whether the check may be given a sandbox that others have used."""
    return check.name in COMMANDS


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
