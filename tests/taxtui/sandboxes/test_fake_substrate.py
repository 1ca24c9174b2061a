"""The shipped fake keeps what it can promise without a shell, and fails where it is told to."""

from __future__ import annotations

import pytest

from taxtui.errors import SandboxLost, Throttled
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.conformance import Check, checks
from taxtui.sandboxes.fake import FakeSubstrate
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.protocol import Marks

WITHOUT_A_SHELL = {
    "options",
    "check answers",
    "from create to destroy",
    "destroy twice",
    "find and reap",
    "the same name twice",
    "cancel create",
    "cancel ready",
    "cancel opening a session",
    "cancel destroy",
    "cancel reset",
}
SPEC = SandboxSpec(name="one", labels={LABEL_RUN: "run"}, limits=Limits(), ttl_s=60)
TRUE = Command(script="true")


@pytest.mark.parametrize("check", [check for check in checks() if check.name in WITHOUT_A_SHELL], ids=str)
async def test_conformance_where_no_shell_is_needed(check: Check) -> None:
    fake = FakeSubstrate()
    await check(lambda: fake)
    assert fake.alive == {}


async def test_failures_come_in_turn_and_a_half_made_sandbox_can_be_found() -> None:
    fake = FakeSubstrate()
    fake.fail("create", Throttled("slow down", retry_after_s=1.0), times=2)
    fake.fail("created", SandboxLost("no answer"))
    fake.fail("exec", SandboxLost("evicted"))
    for number in range(3):
        with pytest.raises(Throttled if number < 2 else SandboxLost):
            await fake.create(SPEC, Marks())
        assert [found.name for found in await fake.find("run")] == ["one"] * (number == 2)
    sandbox = await fake.create(SPEC, Marks())
    with pytest.raises(SandboxLost, match="evicted"):
        await sandbox.exec(TRUE)
    assert (await sandbox.exec(TRUE)).exit_code == 0
