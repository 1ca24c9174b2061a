"""The shipped suite on a bare host: this machine, by a real sshd of the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taxtui.sandboxes import conformance
from taxtui.substrates.ssh.substrate import SshSubstrate
from tests.support.private_sshd import SshBox, ssh_box


@pytest.fixture(scope="module")
def box() -> Iterator[SshBox]:
    with ssh_box() as made:
        yield made


@pytest.mark.sshd
@pytest.mark.parametrize("check", conformance.checks(), ids=str)
async def test_conformance(check: conformance.Check, box: SshBox) -> None:
    try:
        await check(lambda: SshSubstrate(box.options()), short_ttl_s=3.0)
    except conformance.NotApplicable as reason:
        pytest.skip(str(reason))
    assert box.left() == []
