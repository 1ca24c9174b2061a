"""The shipped suite on the ECS adapter, against the stand-in that really executes commands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taxtui.sandboxes import conformance
from taxtui.substrates.aws.ecs.substrate import EcsSubstrate
from tests.support.ecs_standin import EcsStandin
from tests.support.ecs_standin_setup import CREDENTIALS, options, standin


@pytest.fixture(scope="module")
def ecs() -> Iterator[EcsStandin]:
    with standin(sessions_limit=4) as running:  # the suite opens more at a time than an agent's default allows
        yield running


@pytest.mark.parametrize("check", conformance.checks(), ids=str)
async def test_conformance(check: conformance.Check, ecs: EcsStandin, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)
    try:
        await check(lambda: EcsSubstrate(options(ecs, sessions=4)), short_ttl_s=1.0)
    except conformance.NotApplicable as reason:
        pytest.skip(str(reason))
    assert ecs.running() == []
    assert ecs.active_definitions() == []
