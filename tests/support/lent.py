"""A sandbox that checks of what commands do share, where making one takes longer than most of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Self, cast

import pytest
import pytest_asyncio

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from taxtui.sandboxes.conformance.bench import Bench, Factory
from taxtui.sandboxes.protocol import Found, Marks, Sandbox, Substrate

TTL_S: Final = 3600.0
COMMANDS: Final = (
    *("exit codes", "streams", "exact bytes", "5 MB output", "standard input", "scripts", "surroundings"),
    *("commands are apart", "output like a protocol", "chatter between commands", "timeout"),
    *("timeout with closed streams", "a killed shell", "closing"),
)
"""Checks that ask nothing of how a sandbox comes and goes, and leave nothing running in it."""
CORE: Final = (
    *("check answers", "exit codes", "streams", "exact bytes", "5 MB output", "standard input", "timeout"),
    *("a killed shell", "from create to destroy", "destroy while a command runs", "find and reap", "deadline", "reset"),
)
"""Checks that a second runtime of the same adapter has to pass."""

SHARING: Final = [check for check in checks() if check.name in COMMANDS]
OWNING: Final = [check for check in checks() if check.name not in COMMANDS]
"""All checks: those that may be given a sandbox that others have used, and those that have their own."""
CORE_SHARING: Final = [check for check in SHARING if check.name in CORE]
CORE_OWNING: Final = [check for check in OWNING if check.name in CORE]


class Lent:
    """The substrate as a check sees it: ``create`` gives the one sandbox, which whoever has made it ends."""

    def __init__(self, substrate: Substrate, sandbox: Sandbox) -> None:
        self._substrate, self._sandbox = substrate, sandbox

    def __getattr__(self, name: str) -> object:
        return getattr(self._substrate, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Others go on with it."""

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        return self._sandbox

    async def find(self, run_id: str) -> list[Found]:
        return []


@contextlib.asynccontextmanager
async def lent(factory: Factory, acquire: str = "create") -> AsyncIterator[Substrate]:
    """Enter the substrate, and lend a sandbox of it, which is made as for a check, and in the end is found no more."""
    async with Bench(factory, "exec", None, acquire) as bench:
        sandbox = await bench.create(bench.spec(ttl_s=TTL_S))
        try:
            yield cast(Substrate, Lent(bench.substrate, sandbox))
        finally:
            await sandbox.destroy()


def lending(place: Callable[[], AbstractAsyncContextManager[Substrate]]) -> Any:
    """A fixture of its module: what ``lent`` gives of a place, for all checks of commands there."""

    @pytest_asyncio.fixture(scope="module", loop_scope="module")
    async def one() -> AsyncIterator[Substrate]:
        async with place() as substrate:
            yield substrate

    return one


async def passes(check: Check, factory: Factory, **asked: Any) -> None:
    """Run the check; its test is skipped where it has nothing to ask of this place."""
    try:
        await check(factory, **asked)
    except NotApplicable as reason:
        pytest.skip(str(reason))
