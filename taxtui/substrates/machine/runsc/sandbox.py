"""One container: how it is started, entered and ended."""

from __future__ import annotations

import os

import msgspec

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.kill import kill_script
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.kit.process import Process
from taxtui.substrates.machine.entered import EnteredSandbox
from taxtui.substrates.machine.host import Host
from taxtui.substrates.machine.runsc.bundle import configuration
from taxtui.substrates.machine.runsc.failure import not_killed, not_removed, not_started


class RunscSandbox(EnteredSandbox):
    """One gVisor sandbox; ``folder`` is its OCI bundle."""

    def __init__(self, host: Host, name: str, platform: str) -> None:
        """``platform``: how gVisor sees system calls."""
        super().__init__(host, name)
        self._platform = platform

    async def start(self, spec: SandboxSpec, prologue: str) -> None:
        """As ``ContainedSandbox.start``."""
        bundle = msgspec.json.encode(configuration(spec, self.host.root))
        (self.folder / "config.json").write_bytes(bundle)
        argv = self._runsc("run", "-detach", f"-bundle={self.folder}", self.name, network=spec.network)
        # The sandbox keeps the descriptors that runsc had, so that they must not be pipes which somebody waits for.
        log = self.folder / "log"
        script = f'{prologue}exec "$@" >"$0" 2>&1'
        code, said = await self._ran(["/bin/sh", "-c", script, str(log), *argv])
        if code:
            raise not_started(code, log.read_bytes() if log.exists() else said)

    def enter(self, argv: list[str], env: dict[str, str]) -> list[str]:
        """As ``EnteredSandbox.enter``."""
        root = self.host.root
        variables = [f"--env={key}={value}" for key, value in env.items()]
        user = f"--user={root.uid}:{root.gid}"
        return self._runsc("exec", user, f"--cwd={root.folder}", *variables, self.name, *argv)

    async def kill(self, mark: str) -> None:
        """As ``EnteredSandbox.kill``: only the sandbox knows its processes."""
        root = self.host.root
        user = f"--user={root.uid}:{root.gid}"
        script = ["sh", "-c", kill_script(mark)]
        code, said = await self._ran(self._runsc("exec", user, "--cwd=/", self.name, *script))
        if code == 1 or (code and not await self.ended()):
            raise not_killed(code, said)

    async def ended(self) -> bool:
        """As ``ContainedSandbox.ended``."""
        code, said = await self._ran(self._runsc("state", self.name))
        return bool(code) or b'"running"' not in said

    async def remove(self) -> None:
        """As ``ContainedSandbox.remove``.

        Where the limits could hold them, gVisor's processes are gone then, and all that is left are files in the
        folder: ``runsc delete`` would take a second and a half to find that out.
        """
        await self.host.limiter.kill(self.name)
        if self.folder.exists() and not await self.ended():
            code, said = await self._ran(self._runsc("delete", "-force", self.name))
            if code:
                raise not_removed(self.name, code, said)
        await self.host.forget(self.name)

    def _runsc(self, *arguments: str, network: bool = False) -> list[str]:
        """One of its commands. The limits are ours, and hold the sandbox's processes."""
        flags = [f"--root={self.folder / 'state'}", f"--platform={self._platform}", "--ignore-cgroups"]
        flags += ["--overlay2=all:memory", f"--network={'host' if network else 'none'}"]
        return ["/usr/bin/env", "runsc", *flags, *arguments]

    async def _ran(self, argv: list[str]) -> tuple[int, bytes]:
        """The exit code and what was said of it."""
        process = Process(argv, {"PATH": os.environ.get("PATH", ""), SANDBOX_ENV: self.name}, stdin=False)
        try:
            stdout, stderr = await process.output()
        finally:
            await process.close()
        assert process.returncode is not None
        return process.returncode, bytes(stdout.kept + stderr.kept)
