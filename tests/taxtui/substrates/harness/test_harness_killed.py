"""What a killed process leaves of a harness's sandboxes is found without it, and removed down to folder and network."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys

import pytest

from taxtui.sandboxes import registry

pytestmark = pytest.mark.processes

LEAVE = """
import asyncio, os, signal, sys
from taxtui.plan.notation import parse_substrate
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes import registry
from taxtui.sandboxes.protocol import Marks

async def main(text, run):
    async with registry.build(parse_substrate(text)) as substrate:
        labels = {"taxtui.run": run, "taxtui.deadline": "1"}
        spec = SandboxSpec(name=f"taxtui-{run}-1", labels=labels, limits=Limits(), ttl_s=60, network=True)
        sandbox = await substrate.create(spec, Marks())
        await sandbox.exec(Command(script="true"))
        asyncio.ensure_future(sandbox.exec(Command(script="sleep 600")))
        await sandbox.exec(Command(script="true"))
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


def said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.compose
@pytest.mark.parametrize(("name", "module"), [("inspect", "inspect_ai"), ("harbor", "harbor")])
def test_a_killed_run_is_swept(name: str, module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    run = f"k{os.getpid()}"
    left = subprocess.run([sys.executable, "-c", LEAVE, name, run], capture_output=True, text=True, check=False)
    assert left.returncode == -signal.SIGKILL, left.stderr
    label = f"label={name}.taxtui.run={run}"
    assert said("docker", "ps", "--quiet", "--filter", label)
    assert said("docker", "network", "ls", "--quiet", "--filter", label)
    swept = subprocess.run(
        [sys.executable, "-m", "taxtui", "clean", "-s", name, "--run", run], capture_output=True, text=True, check=False
    )
    assert (swept.returncode, f"removed {name} taxtui-{run}-1" in swept.stdout) == (0, True), swept.stderr
    assert said("docker", "ps", "--all", "--quiet", "--filter", label) == ""
    assert said("docker", "network", "ls", "--quiet", "--filter", label) == ""
    assert asyncio.run(_found(name, run)) == []


async def _found(name: str, run: str) -> list[str]:
    from taxtui.plan.notation import parse_substrate

    async with registry.build(parse_substrate(name)) as substrate:
        return [each.name for each in await substrate.find(run)]
