"""The shipped conformance suite on real containers, each check a test: all of it on runc, the core on gVisor."""

from __future__ import annotations

import subprocess

import pytest

from taxtui.sandboxes.conformance import Check
from taxtui.sandboxes.protocol import Substrate
from tests.support.lent import CORE_OWNING, CORE_SHARING, OWNING, SHARING, lending, lent, passes

_SHORT_TTL_S = 4.0

pytestmark = [pytest.mark.docker, pytest.mark.processes]


def _docker(runtime: str) -> Substrate:
    from taxtui.substrates.docker import DockerOptions
    from taxtui.substrates.docker.substrate import DockerSubstrate

    return DockerSubstrate(DockerOptions(runtime=runtime))


@pytest.fixture(scope="module")
def gvisor() -> None:
    found = subprocess.run(["docker", "info", "--format={{json .Runtimes}}"], capture_output=True, check=False)
    if b'"runsc"' not in found.stdout:
        pytest.skip("docker has no runtime runsc")


@pytest.mark.parametrize("check", OWNING, ids=str)
async def test_runc(check: Check) -> None:
    await passes(check, lambda: _docker("runc"), short_ttl_s=_SHORT_TTL_S)


runc = lending(lambda: lent(lambda: _docker("runc")))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", SHARING, ids=str)
async def test_runc_commands(check: Check, runc: Substrate) -> None:
    await passes(check, lambda: runc, short_ttl_s=_SHORT_TTL_S)


@pytest.mark.parametrize("check", CORE_OWNING, ids=str)
async def test_runsc(check: Check, gvisor: None) -> None:
    await passes(check, lambda: _docker("runsc"), short_ttl_s=_SHORT_TTL_S)


runsc = lending(lambda: lent(lambda: _docker("runsc")))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", CORE_SHARING, ids=str)
async def test_runsc_commands(check: Check, gvisor: None, runsc: Substrate) -> None:
    await passes(check, lambda: runsc, short_ttl_s=_SHORT_TTL_S)
