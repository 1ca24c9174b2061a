"""A framed shell whose sandbox is watched, so that what breaks it is told from what became of the sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.framed_shell import FramedShell
from taxtui.sandboxes.protocol import ExecResult


class WatchedSession:
    """A persistent shell that, when it breaks, says what became of its sandbox; a ``substrate.Session``."""

    def __init__(self, shell: FramedShell, lost_soon: Callable[[], Awaitable[str | None]], what: str = "") -> None:
        """``lost_soon`` says why no command can run any more, None where all seems well; ``what`` goes before it."""
        self._shell = shell
        self._lost_soon = lost_soon
        self._what = what

    async def exec(self, command: Command) -> ExecResult:
        """As ``Session.exec``."""
        try:
            return await self._shell.exec(command)
        except ExecTimeout:
            raise
        except (SandboxLost, ExecFailed) as error:
            lost = await self._lost_soon()
            raise (SandboxLost(f"{self._what}{lost}") if lost else error) from error

    async def close(self) -> None:
        """As ``Session.close``; where the sandbox is lost there is nothing to end."""
        try:
            await self._shell.close()
        except ExecFailed:
            if not await self._lost_soon():
                raise
