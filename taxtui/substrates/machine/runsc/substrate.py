"""gVisor without a daemon: what docker with the same runtime adds to it is the daemon's.

The root file system is shared; what a sandbox writes is in memory and ends with it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import msgspec

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.kill import kill_script
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.kit.process import Process
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.machine.runsc.bundle import configuration
from taxtui.substrates.machine.runsc.failure import not_killed, not_removed, not_started
from taxtui.substrates.machine.runsc.options import RunscOptions
from taxtui.substrates.machine.substrate import MachineSubstrate, StartedContainer


class RunscContainer(StartedContainer):
    """One gVisor sandbox; ``folder`` is its OCI bundle."""

    def __init__(self, substrate: RunscSubstrate, name: str, folder: Path) -> None:
        """Nothing is started."""
        self._substrate = substrate
        self._name = name
        self._folder = folder

    async def start(self, spec: SandboxSpec, prologue: str, marks: Marks) -> None:
        """As ``StartedContainer.start``."""
        bundle = msgspec.json.encode(configuration(spec, self._substrate.root))
        (self._folder / "config.json").write_bytes(bundle)
        argv = self._runsc("run", "-detach", f"-bundle={self._folder}", self._name, network=spec.network)
        # The sandbox keeps the descriptors that runsc had, so that they must not be pipes which somebody waits for.
        log = self._folder / "log"
        script = f'{prologue}exec "$@" >"$0" 2>&1'
        code, said = await self._ran(["/bin/sh", "-c", script, str(log), *argv])
        if code:
            raise not_started(code, log.read_bytes() if log.exists() else said)

    def enter(self, argv: list[str], env: dict[str, str]) -> list[str]:
        """As ``Container.enter``."""
        root = self._substrate.root
        variables = [f"--env={key}={value}" for key, value in env.items()]
        user = f"--user={root.uid}:{root.gid}"
        return self._runsc("exec", user, f"--cwd={root.folder}", *variables, self._name, *argv)

    async def kill(self, mark: str) -> None:
        """As ``Container.kill``: only the sandbox knows its processes."""
        root = self._substrate.root
        user = f"--user={root.uid}:{root.gid}"
        script = ["sh", "-c", kill_script(mark)]
        code, said = await self._ran(self._runsc("exec", user, "--cwd=/", self._name, *script))
        if code == 1 or (code and not await self.ended()):
            raise not_killed(code, said)

    async def ended(self) -> bool:
        """As ``Container.ended``."""
        code, said = await self._ran(self._runsc("state", self._name))
        return bool(code) or b'"running"' not in said

    async def remove(self) -> None:
        """As ``Container.remove``.

        Where the limits could hold them, gVisor's processes are gone then, and all that is left are files in the
        folder: ``runsc delete`` would take a second and a half to find that out.
        """
        await self._substrate.limiter.kill(self._name)
        if self._folder.exists() and not await self.ended():
            code, said = await self._ran(self._runsc("delete", "-force", self._name))
            if code:
                raise not_removed(self._name, code, said)
        await self._substrate.forget(self._name)

    def _runsc(self, *arguments: str, network: bool = False) -> list[str]:
        """One of its commands. The limits are ours, and hold the sandbox's processes."""
        flags = [f"--root={self._folder / 'state'}", f"--platform={self._substrate.variant}", "--ignore-cgroups"]
        flags += ["--overlay2=all:memory", f"--network={'host' if network else 'none'}"]
        return ["/usr/bin/env", "runsc", *flags, *arguments]

    async def _ran(self, argv: list[str]) -> tuple[int, bytes]:
        """The exit code and what was said of it."""
        process = Process(argv, {"PATH": os.environ.get("PATH", ""), SANDBOX_ENV: self._name}, stdin=False)
        try:
            stdout, stderr = await process.output()
        finally:
            await process.close()
        assert process.returncode is not None
        return process.returncode, bytes(stdout.kept + stderr.kept)


class RunscSubstrate(MachineSubstrate):
    """gVisor sandboxes."""

    name: ClassVar[str] = "runsc"
    Options: ClassVar[type[msgspec.Struct]] = RunscOptions
    program: ClassVar[str] = "runsc"
    package: ClassVar[str] = "runsc"

    def __init__(self, options: RunscOptions | None = None) -> None:
        """Nothing is looked for yet."""
        self._own = options or RunscOptions()
        super().__init__(self._own)
        self.variant = self._own.platform

    def container(self, name: str, folder: Path) -> RunscContainer:
        """As ``MachineSubstrate.container``."""
        return RunscContainer(self, name, folder)
