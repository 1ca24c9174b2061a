"""Credentials and emulators for tests of the AWS substrates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.standins.aws_setup import CREDENTIALS, standin
from tests.support.standins.ecs_standin import EcsStandin

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)


@pytest.fixture
def ecs() -> Iterator[EcsStandin]:
    with standin("ecs") as running:
        yield running


@pytest.fixture
def ec2() -> Iterator[Ec2Standin]:
    with standin("ec2") as running:
        yield running


@pytest.fixture(params=[pytest.param("ec2", marks=pytest.mark.sshd), "ecs"])
def account(request: pytest.FixtureRequest) -> Any:
    """Each of the two."""
    return request.getfixturevalue(request.param)
