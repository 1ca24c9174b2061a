"""The shipped suite on a bare host: this machine, by a real sshd of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.substrates.ssh.substrate import SshSubstrate
from tests.support.lent import OWNING, SHARING, lent, passes
from tests.support.standins.private_sshd import SshBox, ssh_box

pytestmark = [pytest.mark.sshd, pytest.mark.processes]


@pytest.fixture(scope="module")
def box() -> Iterator[SshBox]:
    with ssh_box() as made:
        yield made
        assert made.left() == []


async def _run(check: Check, factory: Factory, box: SshBox) -> None:
    """A sandbox that is lent may be there, before and after."""
    before = box.left()
    await passes(check, factory, short_ttl_s=3.0)
    assert box.left() == before


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_conformance(check: Check, box: SshBox) -> None:
    await _run(check, lambda: SshSubstrate(box.options()), box)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def folder(box: SshBox) -> AsyncIterator[Substrate]:
    async with lent(lambda: SshSubstrate(box.options())) as one:
        yield one


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_conformance_of_commands(check: Check, box: SshBox, folder: Substrate) -> None:
    await _run(check, lambda: folder, box)
