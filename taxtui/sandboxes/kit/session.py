"""What sessions of all substrates share: whose end ends what they started, and what became of their sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.framed_shell import FramedShell
from taxtui.sandboxes.protocol import ExecResult


class ExplainedSession:
    """A persistent shell that, when it breaks, says what became of its sandbox; a ``protocol.Session``."""

    def __init__(
        self,
        shell: FramedShell,
        explain: Callable[[SubstrateError], Awaitable[SubstrateError]],
        *,
        silent: bool = False,
    ) -> None:
        """``explain`` turns what the shell's connection saw into what happened; the same error where it can't.

        ``silent``: the connection does not tell of the sandbox's end, so that a timeout may be that.
        """
        self._shell = shell
        self._explain = explain
        self._silent = silent

    async def exec(self, command: Command) -> ExecResult:
        """As ``Session.exec``."""
        return await self._told(self._shell.exec(command))

    async def only(self, command: Command) -> ExecResult:
        """As ``FramedShell.only``."""
        return await self._told(self._shell.only(command))

    async def _told(self, running: Awaitable[ExecResult]) -> ExecResult:
        try:
            return await running
        except (SandboxLost, ExecFailed) as error:
            if isinstance(error, ExecTimeout) and not self._silent:
                raise
            explained = await self._explain(error)
            if explained is error:
                raise
            raise explained from error

    async def close(self) -> None:
        """As ``Session.close``; where the sandbox is lost there is nothing to end."""
        try:
            await self._shell.close()
        except ExecFailed as error:
            if not isinstance(await self._explain(error), SandboxLost):
                raise


class _Streams(Protocol):
    """The half of a ``ByteStream`` that says nothing of its end."""

    async def read(self) -> tuple[int, bytes]: ...

    async def write(self, data: bytes) -> None: ...


class OwnedStream:
    """A ``ByteStream`` that somebody else ends: by killing, say, all that came of it."""

    def __init__(self, stream: _Streams, end: Callable[[], Awaitable[None]]) -> None:
        """``end`` is called once, by the first ``close``."""
        self.read = stream.read
        self.write = stream.write
        self._end: Callable[[], Awaitable[None]] | None = end

    async def close(self) -> None:
        """As ``ByteStream.close``."""
        end, self._end = self._end, None
        if end is not None:
            await end()
