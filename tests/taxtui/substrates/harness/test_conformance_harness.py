"""The core of the shipped conformance suite on harnesses."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from taxtui.sandboxes.registry import load
from tests.support.harness_images import swerex_image
from tests.support.lent import CORE_OWNING, CORE_SHARING, lent, passes

# A harness leaves pipes to the garbage collector.
pytestmark = [pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"), pytest.mark.processes]

COMMANDS: Final = [check for check in CORE_SHARING if check.mode != "session"]


def harness(name: str, module: str, **options: str) -> Factory:
    pytest.importorskip(module, reason=f"{name} requires an extra, and Harbor Python 3.12 or newer")
    kind = load(name)
    return lambda: kind(kind.Options(**options))  # type: ignore[call-arg]


def swerex_in_docker() -> Factory:
    pytest.importorskip("swerex")
    image = swerex_image()
    if image.startswith(" "):
        pytest.skip(image.strip())
    return harness("swerex", "swerex", image=image)


CONTAINERS: Final = [
    pytest.param(swerex_in_docker, marks=pytest.mark.docker, id="swerex"),
    pytest.param(lambda: harness("inspect", "inspect_ai"), marks=pytest.mark.compose, id="inspect"),
    pytest.param(lambda: harness("harbor", "harbor"), marks=pytest.mark.compose, id="harbor"),
]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("check", CORE_OWNING, ids=str)
async def test_containers(check: Check, container: Callable[[], Factory]) -> None:
    try:
        await passes(check, container())
    finally:
        gc.collect()  # within this test


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONTAINERS)
async def lent_container(request: pytest.FixtureRequest) -> AsyncIterator[Substrate]:
    async with lent(request.param()) as substrate:
        yield substrate
    gc.collect()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", COMMANDS, ids=str)
async def test_commands_in_a_container(check: Check, lent_container: Substrate) -> None:
    await passes(check, lambda: lent_container)
