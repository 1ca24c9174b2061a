"""The shipped conformance suite on harnesses, each check a test: all of it on processes, the core on containers."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance import Check, checks
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.kit.limits import NoLimiter
from taxtui.sandboxes.protocol import Marks, Substrate
from taxtui.sandboxes.registry import load
from taxtui.substrates.harness import folders
from tests.support.harness_images import swerex_image
from tests.support.lent import CORE_OWNING, CORE_SHARING, lending, lent, passes
from tests.support.sandboxes import spec

# A harness leaves pipes to the garbage collector.
pytestmark = [pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"), pytest.mark.processes]

CHECKS = [check for check in checks() if check.mode != "session"]
COMMANDS = [check for check in CORE_SHARING if check.mode != "session"]


def _harness(name: str, **options: str) -> Factory:
    kind = load(name)
    return lambda: kind(kind.Options(**options))  # type: ignore[call-arg]


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_swerex_local(check: Check) -> None:
    pytest.importorskip("swerex")
    await passes(check, _harness("swerex"))


def _swerex_in_docker() -> Factory:
    pytest.importorskip("swerex")
    image = swerex_image()
    if image.startswith(" "):
        pytest.skip(image.strip())
    return _harness("swerex", deployment="docker", image=image)


@pytest.mark.docker
@pytest.mark.parametrize("check", CORE_OWNING, ids=str)
async def test_swerex_docker(check: Check) -> None:
    try:
        await passes(check, _swerex_in_docker())
    finally:
        gc.collect()  # here, and not in whose test comes next


@contextlib.asynccontextmanager
async def _swerex_lent() -> AsyncIterator[Substrate]:
    async with lent(_swerex_in_docker()) as one:
        yield one
    gc.collect()


swerex_container = lending(_swerex_lent)


@pytest.mark.docker
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", COMMANDS, ids=str)
async def test_swerex_docker_commands(check: Check, swerex_container: Substrate) -> None:
    await passes(check, lambda: swerex_container)


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_inspect_local(check: Check) -> None:
    pytest.importorskip("inspect_ai")
    await passes(check, _harness("inspect"))


def _inspect_in_docker() -> Factory:
    pytest.importorskip("inspect_ai")
    return _harness("inspect", environment="docker")


@pytest.mark.compose
@pytest.mark.parametrize("check", CORE_OWNING, ids=str)
async def test_inspect_docker(check: Check) -> None:
    await passes(check, _inspect_in_docker())


inspect_container = lending(lambda: lent(_inspect_in_docker()))


@pytest.mark.compose
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", COMMANDS, ids=str)
async def test_inspect_docker_commands(check: Check, inspect_container: Substrate) -> None:
    await passes(check, lambda: inspect_container)


@pytest.mark.compose
@pytest.mark.parametrize("check", CORE_OWNING, ids=str)
async def test_harbor_docker(check: Check) -> None:
    await passes(check, _harbor())


def _harbor() -> Factory:
    pytest.importorskip("harbor", reason="harbor needs Python 3.12 or newer, and an extra")
    return _harness("harbor")


harbor_container = lending(lambda: lent(_harbor()))


@pytest.mark.compose
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", COMMANDS, ids=str)
async def test_harbor_docker_commands(check: Check, harbor_container: Substrate) -> None:
    await passes(check, lambda: harbor_container)


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
