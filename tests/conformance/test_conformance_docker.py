"""The shipped conformance suite on real containers, each check a test: all of it on runc, the core on gVisor."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from taxtui.sandboxes.conformance import Check, NotApplicable
from taxtui.sandboxes.conformance.bench import Factory
from taxtui.sandboxes.protocol import Substrate
from tests.support.conformance import CORE
from tests.support.lent import OWNING, SHARING, lent

_SHORT_TTL_S = 4.0

pytestmark = pytest.mark.docker


def _docker(runtime: str) -> Substrate:
    from taxtui.substrates.docker.options import DockerOptions
    from taxtui.substrates.docker.substrate import DockerSubstrate

    return DockerSubstrate(DockerOptions(runtime=runtime))


@pytest.fixture(scope="module")
def gvisor() -> None:
    found = subprocess.run(["docker", "info", "--format={{json .Runtimes}}"], capture_output=True, check=False)
    if b'"runsc"' not in found.stdout:
        pytest.skip("docker has no runtime runsc")


async def _run(check: Check, factory: Factory) -> None:
    try:
        await check(factory, short_ttl_s=_SHORT_TTL_S)
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_runc(check: Check) -> None:
    await _run(check, lambda: _docker("runc"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runc() -> AsyncIterator[Substrate]:
    async with lent(lambda: _docker("runc")) as one:
        yield one


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_runc_commands(check: Check, runc: Substrate) -> None:
    await _run(check, lambda: runc)


@pytest.mark.parametrize("check", [each for each in OWNING if each.name in CORE], ids=str)
async def test_runsc(check: Check, gvisor: None) -> None:
    await _run(check, lambda: _docker("runsc"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runsc(gvisor: None) -> AsyncIterator[Substrate]:
    async with lent(lambda: _docker("runsc")) as one:
        yield one


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", [each for each in SHARING if each.name in CORE], ids=str)
async def test_runsc_commands(check: Check, runsc: Substrate) -> None:
    await _run(check, lambda: runsc)
