"""The shipped conformance suite on real containers, each check a test: all of it on runc, the core on gVisor."""

from __future__ import annotations

import subprocess

import pytest

from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from tests.support.conformance import CORE

_SHORT_TTL_S = 4.0

pytestmark = pytest.mark.docker


def _has_gvisor() -> bool:
    found = subprocess.run(["docker", "info", "--format={{json .Runtimes}}"], capture_output=True, check=False)
    return b'"runsc"' in found.stdout


async def _run(check: Check, runtime: str) -> None:
    from taxtui.substrates.docker.options import DockerOptions
    from taxtui.substrates.docker.substrate import DockerSubstrate

    try:
        await check(lambda: DockerSubstrate(DockerOptions(runtime=runtime)), short_ttl_s=_SHORT_TTL_S)
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_runc(check: Check) -> None:
    await _run(check, "runc")


@pytest.mark.parametrize("check", [each for each in checks() if each.name in CORE], ids=str)
async def test_runsc(check: Check) -> None:
    if not _has_gvisor():
        pytest.skip("docker has no runtime runsc")
    await _run(check, "runsc")
