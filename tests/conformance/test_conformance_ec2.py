"""The shipped suite on the EC2 adapter, against moto with a real sshd behind every instance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from taxtui.sandboxes import conformance
from taxtui.substrates.aws.ec2.substrate import Ec2Substrate
from tests.support.ec2_standin_setup import options, standin
from tests.support.ecs_standin_setup import CREDENTIALS

if TYPE_CHECKING:
    from tests.support.ec2_standin import Ec2Standin


@pytest.fixture(scope="module")
def ec2() -> Iterator[Ec2Standin]:
    with standin(minute_s=2.0) as running:
        yield running


@pytest.mark.sshd
@pytest.mark.parametrize("check", conformance.checks(), ids=str)
async def test_conformance(check: conformance.Check, ec2: Ec2Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)
    ec2.minute_s = 2.0 if check.name == "deadline" else 60.0
    try:
        await check(lambda: Ec2Substrate(options(ec2)), short_ttl_s=60.0)
    except conformance.NotApplicable as reason:
        pytest.skip(str(reason))
    assert not any(ec2.leftovers().values()), ec2.leftovers()
