"""The shipped conformance suite on this machine's own sandboxes, each check a test."""

from __future__ import annotations

import pytest

from taxtui.sandboxes.conformance import Check, checks
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate
from tests.support.lent import passes

pytestmark = pytest.mark.processes


@pytest.mark.bwrap
@pytest.mark.parametrize("check", checks(), ids=str)
async def test_bwrap(check: Check) -> None:
    await passes(check, lambda: LocalSubstrate(LocalOptions(isolation="bwrap")))


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_plain(check: Check) -> None:
    await passes(check, lambda: LocalSubstrate(LocalOptions(isolation="plain")))
