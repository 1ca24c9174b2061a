"""The shipped conformance suite on harnesses, each check a test: all of it on processes, the core on containers."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from taxtui.sandboxes.kit.limits import NoLimiter
from taxtui.sandboxes.protocol import Marks
from taxtui.sandboxes.registry import load
from taxtui.substrates.harness import folders
from tests.support.conformance import CORE
from tests.support.harness_images import swerex_image
from tests.support.sandboxes import spec

# A harness leaves pipes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CHECKS = [check for check in checks() if check.mode != "session"]


async def _run(check: Check, substrate: str, **options: str) -> None:
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


async def test_what_cannot_be_held_to_its_limits_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("swerex")

    async def none() -> NoLimiter:
        return NoLimiter()

    monkeypatch.setattr(folders, "best_limiter", none)
    monkeypatch.setattr(NoLimiter, "prepare", lambda *_: "false && ")
    async with load("swerex")() as substrate:
        sandbox = await substrate.create(spec(), Marks())
        try:
            with pytest.raises(ExecFailed, match="exit code 1"):
                await sandbox.exec(Command(script=f"touch {tmp_path}/ran\ntouch {tmp_path}/ran"))
        finally:
            await sandbox.destroy()
    assert not list(tmp_path.iterdir())
