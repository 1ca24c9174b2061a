"""The shipped conformance suite on this machine's own sandboxes, each check a test."""

from __future__ import annotations

import pytest

from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from taxtui.substrates.local.options import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate


async def _run(check: Check, options: LocalOptions) -> None:
    try:
        await check(lambda: LocalSubstrate(options))
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.bwrap
@pytest.mark.parametrize("check", checks(), ids=str)
async def test_bwrap(check: Check) -> None:
    await _run(check, LocalOptions(isolation="bwrap"))


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_plain(check: Check) -> None:
    await _run(check, LocalOptions(isolation="plain"))
