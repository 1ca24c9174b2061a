"""One container: how it is started, entered and ended."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

from taxtui.errors import CreateFailed
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit.framed_shell import ENDED
from taxtui.sandboxes.kit.kill import MARK, kill_marked
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.kit.process import Process
from taxtui.substrates.machine.entered import EnteredSandbox
from taxtui.substrates.machine.host import Host
from taxtui.substrates.machine.nspawn.failure import not_started
from taxtui.substrates.machine.root import OUR_FOLDER

_BEGUN: Final = b"begun\n"
_ENTER: Final = ("/usr/bin/env", "nsenter", "--mount", "--uts", "--ipc", "--net", "--pid", "--root")
_NO_RIGHTS: Final = ("--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")


class NspawnSandbox(EnteredSandbox):
    """One ``systemd-nspawn``, and the process id by which its namespaces are entered."""

    def __init__(self, host: Host, name: str) -> None:
        """Nothing is started."""
        super().__init__(host, name)
        self._process: Process | None = None
        self._pid = 0

    async def start(self, spec: SandboxSpec, prologue: str) -> None:
        """As ``ContainedSandbox.start``."""
        argv = [
            *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--as-pid2", "--volatile=overlay"),
            *("--link-journal=no", "--timezone=off", "--hostname=sandbox", f"--directory={self.host.root.files}"),
            # Its name is the lock by which two of them could be in each other's way.
            *(f"--machine={self.name[-60:]}", f"--tmpfs={OUR_FOLDER}:mode=1777"),
            *([] if spec.network else ["--private-network", "--resolv-conf=off"]),
            *("--console=pipe", "--", "sh", "-c", 'echo begun; exec sleep "$0"', str(math.ceil(spec.ttl_s))),
        ]
        env = {"PATH": os.environ.get("PATH", ""), SANDBOX_ENV: spec.name}
        self._process = process = Process(["/bin/sh", "-c", f'{prologue}exec "$@"', "sh", *argv], env, stdin=False)
        said = b""
        while not said.endswith(_BEGUN):
            channel, chunk = await process.read()
            if channel == ENDED:
                raise not_started(said)
            said += chunk
        self._pid = _only_child(process.pid)

    def enter(self, argv: list[str], env: dict[str, str]) -> list[str]:
        """As ``EnteredSandbox.enter``."""
        root = self.host.root
        return [
            *(
                "/usr/bin/nsenter",
                f"--target={self._pid}",
                "--mount",
                "--uts",
                "--ipc",
                "--net",
                "--pid",
                "--root",
                "--",
            ),
            *("setpriv", f"--reuid={root.uid}", f"--regid={root.gid}", *_NO_RIGHTS, "--"),
            *("env", "-i", *(f"{key}={value}" for key, value in env.items())),
            *("sh", "-c", 'cd "$0" && exec "$@"', root.folder, *argv),
        ]

    async def kill(self, mark: str) -> None:
        """As ``EnteredSandbox.kill``: its processes are this machine's, too."""
        await kill_marked(f"{MARK}={mark}")

    async def ended(self) -> bool:
        """As ``ContainedSandbox.ended``."""
        return self._process is None or self._process.returncode is not None

    async def remove(self) -> None:
        """As ``ContainedSandbox.remove``."""
        if self._process is not None:
            await self._process.close()
        await kill_marked(f"{SANDBOX_ENV}={self.name}")
        await self.host.forget(self.name)


def _only_child(pid: int) -> int:
    """The first process in the container's namespaces. Raises ``CreateFailed``."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    if len(children) != 1:
        raise CreateFailed("systemd-nspawn ended as soon as it had started")
    return int(children[0])
