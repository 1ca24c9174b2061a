"""The shipped conformance suite on containers that no daemon makes, each check a test: all of it on systemd-nspawn, the
core on gVisor and user-mode Linux, whose commands take ten times as long."""

from __future__ import annotations

import pytest

from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from tests.support.conformance import CORE


async def _run(check: Check, substrate: str) -> None:
    from taxtui.sandboxes.registry import load

    try:
        await check(load(substrate))
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
@pytest.mark.parametrize("check", [each for each in checks() if each.name in CORE], ids=str)
async def test_uml(check: Check) -> None:
    await _run(check, "uml")
