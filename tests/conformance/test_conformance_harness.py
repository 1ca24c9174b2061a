"""The shipped conformance suite on harnesses, each check a test: all of it on processes, the core on containers."""

from __future__ import annotations

import gc

import pytest

from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from tests.support.conformance import CORE
from tests.support.harness_images import swerex_image

# A harness leaves pipes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CHECKS = [check for check in checks() if check.mode != "session"]


async def _run(check: Check, substrate: str, **options: str) -> None:
    from taxtui.sandboxes.registry import load

    kind = load(substrate)
    try:
        await check(lambda: kind(kind.Options(**options)))  # type: ignore[call-arg]
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_swerex_local(check: Check) -> None:
    pytest.importorskip("swerex")
    await _run(check, "swerex")


@pytest.mark.docker
@pytest.mark.parametrize("check", [check for check in CHECKS if check.name in CORE], ids=str)
async def test_swerex_docker(check: Check) -> None:
    pytest.importorskip("swerex")
    image = swerex_image()
    if image.startswith(" "):
        pytest.skip(image.strip())
    try:
        await _run(check, "swerex", deployment="docker", image=image)
    finally:
        gc.collect()  # here, and not in whose test comes next


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_inspect_local(check: Check) -> None:
    pytest.importorskip("inspect_ai")
    await _run(check, "inspect")


@pytest.mark.compose
@pytest.mark.parametrize("check", [check for check in CHECKS if check.name in CORE], ids=str)
async def test_inspect_docker(check: Check) -> None:
    pytest.importorskip("inspect_ai")
    await _run(check, "inspect", environment="docker")


@pytest.mark.compose
@pytest.mark.parametrize("check", [check for check in CHECKS if check.name in CORE], ids=str)
async def test_harbor_docker(check: Check) -> None:
    pytest.importorskip("harbor", reason="harbor needs Python 3.12 or newer, and an extra")
    await _run(check, "harbor")
