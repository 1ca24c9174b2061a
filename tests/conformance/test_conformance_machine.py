"""The shipped conformance suite on containers that no daemon makes, each check a test: all of it on systemd-nspawn, the
core on gVisor and user-mode Linux, whose commands take ten times as long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import pytest
import pytest_asyncio

from taxtui.plan.spec import Limits, SandboxSpec
from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.kit.kill import new_mark
from taxtui.sandboxes.protocol import Marks, Substrate
from taxtui.substrates.machine.uml.substrate import UmlSubstrate
from tests.support.conformance import CORE
from tests.support.lent import Lent, lends


async def _run(check: Check, substrate: str | Factory) -> None:
    from taxtui.sandboxes.registry import load

    try:
        await check(load(substrate) if isinstance(substrate, str) else substrate)
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.nspawn
@pytest.mark.parametrize("check", checks(), ids=str)
async def test_nspawn(check: Check) -> None:
    await _run(check, "nspawn")


@pytest.mark.runsc
@pytest.mark.parametrize("check", [each for each in checks() if each.name in CORE], ids=str)
async def test_runsc(check: Check) -> None:
    await _run(check, "runsc")


@pytest.mark.uml
@pytest.mark.parametrize("check", [each for each in checks() if each.name in CORE and not lends(each)], ids=str)
async def test_uml(check: Check) -> None:
    await _run(check, "uml")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine() -> AsyncIterator[Lent]:
    """One machine of user-mode Linux, whose boot takes longer than most checks; those above have their own."""
    async with UmlSubstrate() as substrate:
        spec = SandboxSpec(name=f"taxtui-{new_mark()}-0", labels={}, limits=Limits(), ttl_s=3600)
        sandbox = substrate.sandbox(spec.name)
        try:
            await sandbox.begin(spec, Marks())
            yield Lent(substrate, sandbox)
        finally:
            await sandbox.destroy()


@pytest.mark.uml
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", [each for each in checks() if each.name in CORE and lends(each)], ids=str)
async def test_uml_commands(check: Check, machine: Lent) -> None:
    await _run(check, lambda: cast(Substrate, machine))
