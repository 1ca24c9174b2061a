"""The shipped conformance suite on harnesses: all checks of exec on processes, the core on containers."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command
from taxtui.sandboxes.conformance import Check, checks
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.kit.limits import Limiter
from taxtui.sandboxes.protocol import Marks, Substrate
from taxtui.sandboxes.registry import load
from taxtui.substrates.harness import folders
from tests.support.harness_images import swerex_image
from tests.support.lent import CORE_OWNING, CORE_SHARING, lent, passes
from tests.support.sandboxes import spec

# A harness leaves pipes to the garbage collector.
pytestmark = [pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"), pytest.mark.processes]

CHECKS: Final = [check for check in checks() if check.mode != "session"]
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
    return harness("swerex", "swerex", deployment="docker", image=image)


CONTAINERS: Final = [
    pytest.param(swerex_in_docker, marks=pytest.mark.docker, id="swerex"),
    pytest.param(
        lambda: harness("inspect", "inspect_ai", environment="docker"), marks=pytest.mark.compose, id="inspect"
    ),
    pytest.param(lambda: harness("harbor", "harbor"), marks=pytest.mark.compose, id="harbor"),
]


@pytest.mark.parametrize(("name", "module"), [("swerex", "swerex"), ("inspect", "inspect_ai")])
@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_processes(check: Check, name: str, module: str) -> None:
    await passes(check, harness(name, module))


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


async def test_a_command_without_its_limits_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("swerex")

    async def none() -> Limiter:
        return Limiter()

    monkeypatch.setattr(folders, "best_limiter", none)
    monkeypatch.setattr(Limiter, "prepare", lambda *_: "false && ")
    async with load("swerex")() as substrate:
        sandbox = await substrate.create(spec(), Marks())
        try:
            with pytest.raises(ExecFailed, match="exit code 1"):
                await sandbox.exec(Command(script=f"touch {tmp_path}/ran\ntouch {tmp_path}/ran"))
        finally:
            await sandbox.destroy()
    assert not list(tmp_path.iterdir())
