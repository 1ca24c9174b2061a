"""A sandbox of a harness: a command is a script of text, and the answer is text.

The harness's own path carries the command and the answer. Two actions go through the sandbox's site instead: the kill
of a command, and the removal of a busy sandbox. A busy harness does neither.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from typing import ClassVar, Final

from taxtui.errors import ExecFailed
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.text_command import TextCommand
from taxtui.sandboxes.kit.text_sandbox import TextAnswer, TextSandbox
from taxtui.sandboxes.protocol import Marks, Session
from taxtui.substrates.harness.sites import Sites

_ARGUMENT: Final = 100_000  # bytes of a script; Linux takes no argument beyond 128 KiB
_STOP_S: Final = 30.0


class HarnessedSandbox(TextSandbox):
    """A sandbox; each harness adds running a script, writing a file, and stopping."""

    SHELLS: ClassVar[tuple[str, ...]] = ("bash", "sh")
    """Sandbox shells that ``run`` starts by itself; for any other shell ``run`` starts sh."""

    def __init__(self, name: str, sites: Sites, shell: str) -> None:
        """``shell``: the sandbox's."""
        super().__init__(name, shell, {}, inside=shell in self.SHELLS)
        self._sites = sites
        self._stopped = False
        self._removing = asyncio.Lock()

    @abstractmethod
    async def run(self, script: str) -> TextAnswer:
        """Run a script of the sandbox's shell by the harness's command path. Raises ``ExecFailed``, ``Throttled``."""

    @abstractmethod
    async def write(self, path: str, text: str) -> None:
        """Write a file by the harness's own path. Raises ``ExecFailed``."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop the sandbox by the harness. Raises nothing: remains are removed afterwards."""

    async def wait_ready(self, marks: Marks) -> None:
        """There is nothing to wait for: a harness's start waits until commands can be sent."""

    async def send(self, wrapped: TextCommand, timeout_s: float) -> TextAnswer:
        """A script too long for an argument is written to a file first."""
        script = wrapped.script
        if len(script.encode()) > _ARGUMENT:
            path = f"/tmp/.taxtui-{wrapped.mark}.sh"
            await self.write(path, script)
            # A file of another user stays, like the files of ``wrap``, until the end of the sandbox.
            script = f". {path}; _r=$?; rm -f {path} 2>/dev/null; exit $_r"
        return await self.run(script)

    async def kill(self, mark: str) -> None:
        await self._sites.kill(self.name, mark)

    async def lost(self) -> str:
        return "the sandbox ended" if await self._sites.ended(self.name) else ""

    async def open_session(self) -> Session:
        """Not among the capabilities: a harness's sessions are terminals with a prompt, and torn output."""
        raise ExecFailed(f"{self.name}: this harness runs every command by itself; use exec mode")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: by the harness, or by the site if a command still runs."""
        async with self._removing:
            if self.busy:
                await self._sites.remove(self.name)
            if not self._stopped:
                with contextlib.suppress(ExecFailed):  # too slow: the site removes the rest
                    await finish_despite_cancel(self.stop(), _STOP_S)
                self._stopped = True
            await self._sites.remove(self.name)
            self.forget()
