"""A harness's sandboxes without the harness: a cancelled start, and a script too long for an argument."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from pathlib import Path
from typing import ClassVar

import pytest

from taxtui.errors import ExecFailed
from taxtui.plan.spec import Command, Limits, SandboxSpec
from taxtui.sandboxes.kit.text_sandbox import TextAnswer
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.harness import HarborOptions, harness
from taxtui.substrates.harness.harbor_environment import HarborEnvironments
from taxtui.substrates.harness.harness import HarnessedSandbox, HarnessSubstrate

SPEC = SandboxSpec(name="taxtui-r-1", labels={"taxtui.run": "r"}, limits=Limits(), ttl_s=60)


class Environment:
    """Harbor's object of a sandbox, whose start never ends."""

    def __init__(self) -> None:
        self.starting = asyncio.Event()
        self.calls: list[str] = []

    async def start(self) -> None:
        self.starting.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.calls.append("start ended")

    async def exec(self, command: str) -> None:
        pass

    async def stop(self, delete: bool) -> None:
        self.calls.append("stopped")


class Sandbox(HarnessedSandbox):
    """Commands run in this machine's bash."""

    refused = 0
    """The number of a script that is refused."""

    def __init__(self, name: str, substrate: HarnessSubstrate) -> None:
        super().__init__(name, substrate)
        self.scripts: list[str] = []

    async def run(self, script: str) -> TextAnswer:
        self.scripts.append(script)
        if len(self.scripts) == self.refused:
            return TextAnswer("", 1)
        script = script.replace("/tmp/", f"{self._sites.root}/")
        done = await asyncio.to_thread(subprocess.run, ["bash", "-c", script], capture_output=True, text=True)
        return TextAnswer(done.stdout, done.returncode)

    async def stop(self) -> None:
        pass


class Substrate(HarnessSubstrate):
    name = "harbor"
    package = "harbor"
    Options: ClassVar[type[HarborOptions]] = HarborOptions

    def __init__(self, root: Path) -> None:
        self.options = HarborOptions()
        super().__init__("fake", idempotent=False)
        self.sites.root = root
        self.environment = Environment()

    def choose(self) -> HarborEnvironments:
        return HarborEnvironments(HarborOptions(), logging.getLogger(), self.pool)

    def alive(self) -> None:
        assert isinstance(self.sites, HarborEnvironments)
        self.sites.live[SPEC.name] = self.environment

    async def begin(self, spec: SandboxSpec, env: dict[str, str]) -> Sandbox:
        self.alive()
        await self.environment.start()
        return Sandbox(spec.name, self)


@pytest.mark.parametrize("ends_starts", [True, False])
async def test_a_cancelled_start_is_ended_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_starts: bool
) -> None:
    """At once where a start costs money, elsewhere after a wait for its end."""
    monkeypatch.setattr(HarborEnvironments, "ends_starts", ends_starts)
    monkeypatch.setattr(harness, "_UNDO_S", 60 if ends_starts else 0.1)
    substrate = Substrate(tmp_path)
    creating = asyncio.ensure_future(substrate.create(SPEC, Marks()))
    await substrate.environment.starting.wait()
    assert (tmp_path / SPEC.name).exists()
    creating.cancel()
    async with asyncio.timeout(1):
        with pytest.raises(asyncio.CancelledError):
            await creating
        while (tmp_path / SPEC.name).exists():
            await asyncio.sleep(0.01)
    assert substrate.environment.calls == ["start ended", "stopped"]


async def test_a_long_script_runs_from_its_file_and_not_with_a_missing_piece(tmp_path: Path) -> None:
    substrate = Substrate(tmp_path)
    substrate.alive()
    sandbox = Sandbox(SPEC.name, substrate)
    command = Command(script=f": {'x' * 200_000}\necho ran; exit 3")
    done = await sandbox.exec(command)
    assert (done.exit_code, done.stdout) == (3, b"ran\n")
    asked = len(sandbox.scripts)
    sandbox.refused = asked + 2
    with pytest.raises(ExecFailed, match=r"cannot write a long script to /tmp/\.taxtui-\w+\.64: exit code 1"):
        await sandbox.exec(command)
    assert len(sandbox.scripts) == asked + 2
