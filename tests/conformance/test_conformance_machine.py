"""The shipped conformance suite on containers that no daemon makes, each check a test: all of it on systemd-nspawn, the
core on gVisor and user-mode Linux, whose commands take ten times as long."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check, NotApplicable
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.sandboxes.registry import load
from tests.support.conformance import CORE
from tests.support.lent import OWNING, SHARING, lent


async def _run(check: Check, factory: Factory) -> None:
    try:
        await check(factory)
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.nspawn
@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_nspawn(check: Check) -> None:
    await _run(check, load("nspawn"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nspawn() -> AsyncIterator[Substrate]:
    async with lent(load("nspawn")) as one:
        yield one


@pytest.mark.nspawn
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_nspawn_commands(check: Check, nspawn: Substrate) -> None:
    await _run(check, lambda: nspawn)


@pytest.mark.runsc
@pytest.mark.parametrize("check", [each for each in OWNING if each.name in CORE], ids=str)
async def test_runsc(check: Check) -> None:
    await _run(check, load("runsc"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runsc() -> AsyncIterator[Substrate]:
    async with lent(load("runsc")) as one:
        yield one


@pytest.mark.runsc
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", [each for each in SHARING if each.name in CORE], ids=str)
async def test_runsc_commands(check: Check, runsc: Substrate) -> None:
    await _run(check, lambda: runsc)


@pytest.mark.uml
@pytest.mark.parametrize("check", [each for each in OWNING if each.name in CORE], ids=str)
async def test_uml(check: Check) -> None:
    await _run(check, load("uml"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def uml() -> AsyncIterator[Substrate]:
    async with lent(load("uml")) as one:
        yield one


@pytest.mark.uml
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", [each for each in SHARING if each.name in CORE], ids=str)
async def test_uml_commands(check: Check, uml: Substrate) -> None:
    await _run(check, lambda: uml)
