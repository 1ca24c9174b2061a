"""The shipped conformance suite on containers that no daemon makes, each check a test: all of it on systemd-nspawn, the
core on gVisor and user-mode Linux, whose commands take ten times as long."""

from __future__ import annotations

import pytest

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.protocol import Substrate
from taxtui.sandboxes.registry import load
from tests.support.lent import CORE_OWNING, CORE_SHARING, OWNING, SHARING, lending, lent, passes


@pytest.mark.nspawn
@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_nspawn(check: Check) -> None:
    await passes(check, load("nspawn"))


nspawn = lending(lambda: lent(load("nspawn")))


@pytest.mark.nspawn
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_nspawn_commands(check: Check, nspawn: Substrate) -> None:
    await passes(check, lambda: nspawn)


@pytest.mark.runsc
@pytest.mark.parametrize("check", CORE_OWNING, ids=str)
async def test_runsc(check: Check) -> None:
    await passes(check, load("runsc"))


runsc = lending(lambda: lent(load("runsc")))


@pytest.mark.runsc
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", CORE_SHARING, ids=str)
async def test_runsc_commands(check: Check, runsc: Substrate) -> None:
    await passes(check, lambda: runsc)


@pytest.mark.uml
@pytest.mark.parametrize("check", CORE_OWNING, ids=str)
async def test_uml(check: Check) -> None:
    await passes(check, load("uml"))


uml = lending(lambda: lent(load("uml")))


@pytest.mark.uml
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", CORE_SHARING, ids=str)
async def test_uml_commands(check: Check, uml: Substrate) -> None:
    await passes(check, lambda: uml)
