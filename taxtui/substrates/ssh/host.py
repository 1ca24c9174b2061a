"""A host: logins, and the connection for making, listing and removing sandboxes."""

from __future__ import annotations

import asyncio
import time
from typing import Final, NamedTuple

import asyncssh

from taxtui.errors import ExecFailed, SandboxLost, SubstrateUnavailable
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.shell.framed_shell import outputs
from taxtui.sandboxes.kit.shell.over_ssh import CONNECTION_ERRORS, Program, log_in
from taxtui.substrates.ssh import SshOptions
from taxtui.substrates.ssh.failure import no_login, not_looked
from taxtui.substrates.ssh.scripts import HostFacts, facts, look

ANSWER_TIMEOUT_S: Final = 60.0
"""Time limit of a taxtui program there; a removal may have many files to delete."""
FAILED: Final = (*CONNECTION_ERRORS, TimeoutError, ValueError)
"""Exceptions of a login; ``ValueError`` for an unreadable key or configuration."""
_LOGINS: Final = 8
"""Under way at once; sshd drops some of more than ten (MaxStartups)."""
_CHANNELS: Final = 8
"""Concurrent channels of a connection: sshd has ten by default (MaxSessions)."""
_DRAIN_S: Final = 2.0


class HostAnswer(NamedTuple):
    """The end of a taxtui program."""

    code: int
    out: bytes
    err: bytes


class SshHost:
    """The host of the options."""

    def __init__(self, options: SshOptions) -> None:
        self._options = options
        self._gate = asyncio.Semaphore(_LOGINS)
        self._channels = asyncio.Semaphore(_CHANNELS)
        self._opening = asyncio.Lock()
        self._control: asyncssh.SSHClientConnection | None = None
        self._connections: list[asyncssh.SSHClientConnection] = []  # possibly open
        self._been_in = False
        self.facts: HostFacts

    async def open(self) -> None:
        await asyncio.to_thread(self._options.complain)
        code, out, err = await self.run(look(self._options.folder, self._options.fixtures))
        host_facts = facts(out)
        if host_facts is None:
            raise not_looked(code, out or err)
        if host_facts.missing:
            problem = f"ssh: the host has no {host_facts.missing[0]}"
            raise SubstrateUnavailable(problem, fix=f"install there: {', '.join(host_facts.missing)}")
        if not host_facts.base:
            fix = "set folder=PATH to a path in an existing folder"
            raise SubstrateUnavailable("ssh: the folder of the sandboxes cannot be made there", fix=fix)
        self.facts = host_facts

    async def close(self) -> None:
        """Close all connections, also of sandboxes that were removed."""
        for connection in self._connections:
            connection.abort()
        await asyncio.gather(*(connection.wait_closed() for connection in self._connections))

    @property
    def version(self) -> str:
        """Name and version, reported by the SSH server."""
        banner = self._control.get_extra_info("server_version", "") if self._control else ""
        return str(banner).removeprefix("SSH-2.0-")

    async def log_in(self) -> tuple[asyncssh.SSHClientConnection, int]:
        """A new connection, and the wait for a free login slot in ns.

        Raises ``SubstrateUnavailable``, and ``Throttled`` if the host dropped the connection after earlier logins.
        """
        options, came_ns = self._options, time.monotonic_ns()
        async with self._gate:
            waited_ns = time.monotonic_ns() - came_ns
            try:
                connection = await log_in(options.host, **options.login())
            except FAILED as error:
                raise no_login(error, before=self._been_in) from error
        self._been_in = True
        still_open = [previous for previous in self._connections if not previous.is_closed()]
        self._connections = [connection, *still_open]
        return connection, waited_ns

    async def run(self, line: str) -> HostAnswer:
        """Run a taxtui program on the host, over a shared connection, reopened when lost.

        Raises ``SubstrateUnavailable``, ``Throttled``, ``SandboxLost`` if the connection broke, ``ExecFailed`` without
        an answer in time. After a cancellation the program runs to the end.
        """
        program = Program(_DRAIN_S)
        try:
            async with self._channels, asyncio.timeout(ANSWER_TIMEOUT_S):
                await finish_despite_cancel(program.start(await self._connected(), line))
                program.feed(b"")
                out, err = await outputs(program)
        except TimeoutError as error:
            raise ExecFailed("the host does not answer") from error
        finally:
            program.close()
        if program.exit_code is None:
            raise SandboxLost("the SSH channel was closed before the host's answer")
        return HostAnswer(program.exit_code, out.kept, err.kept)

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._opening:
            if self._control is None or self._control.is_closed():
                self._control, _ = await self.log_in()
            return self._control
