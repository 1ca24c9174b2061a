"""What is too large for a serial line, by way of the folder that the guest sees read-only."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from taxtui.errors import SandboxLost
from taxtui.plan.spec import Command
from taxtui.sandboxes.protocol import ExecResult, Session
from taxtui.substrates.machine.uml.boot import SHARED

FOLDER: Final = "shared"
"""In the sandbox's folder."""
_LINE_BYTES: Final = 1500
"""A terminal inside holds 4095 bytes; a line that had to wait for it may never go on."""


@contextlib.contextmanager
def shared(folder: Path, command: Command) -> Iterator[Command]:
    """The same command, short enough for a line; what it stands for is there until the end. Raises ``SandboxLost``."""
    script_bytes = len(command.script) if command.script.isascii() else 4 * len(command.script.encode())
    if script_bytes + 4 * len(command.stdin) <= _LINE_BYTES:
        yield command
        return
    name = f"in-{secrets.token_hex(8)}"
    script, stdin = (folder / FOLDER / f"{name}.{what}" for what in ("script", "stdin"))
    try:
        try:
            script.write_bytes(command.script.encode())
            stdin.write_bytes(command.stdin)
            script.chmod(0o644)
            stdin.chmod(0o644)
        except FileNotFoundError:
            raise SandboxLost("the machine was removed") from None
        read = f'eval "$(cat {SHARED}/{script.name})" <{SHARED}/{stdin.name}'
        yield msgspec.structs.replace(command, script=read, stdin=b"")
    finally:
        script.unlink(missing_ok=True)
        stdin.unlink(missing_ok=True)


class SharingSession:
    """A session whose large commands and inputs are shared; a ``protocol.Session``."""

    def __init__(self, session: Session, folder: Path) -> None:
        """``folder``: the sandbox's on this machine."""
        self._session = session
        self._folder = folder

    async def exec(self, command: Command) -> ExecResult:
        """As ``Session.exec``."""
        with shared(self._folder, command) as small:
            return await self._session.exec(small)

    async def close(self) -> None:
        """As ``Session.close``."""
        await self._session.close()
