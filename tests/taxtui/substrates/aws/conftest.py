"""Credentials and emulators for tests of the AWS substrates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.standins import ec2_standin_setup, ecs_standin_setup
from tests.support.standins.ecs_standin import EcsStandin
from tests.support.standins.ecs_standin_setup import CREDENTIALS

if TYPE_CHECKING:
    from tests.support.standins.ec2_standin import Ec2Standin


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in CREDENTIALS.items():
        monkeypatch.setenv(key, value)


@pytest.fixture
def ecs() -> Iterator[EcsStandin]:
    with ecs_standin_setup.standin() as running:
        yield running


@pytest.fixture
def ec2() -> Iterator[Ec2Standin]:
    with ec2_standin_setup.standin() as running:
        yield running
