"""Sandboxes on a bare host: a folder each, processes over SSH, and no isolation.

Measures SSH itself. The difference to ``local`` is the cost of network and login, a lower bound for every remote
substrate. Every sandbox has a connection.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Final, Literal, Self

import asyncssh

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.plan.spec import FIXTURES_ENV, SandboxSpec
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.kit.refusal import is_named, last_line
from taxtui.sandboxes.kit.removal import remove
from taxtui.sandboxes.kit.shell.framed_shell import outputs
from taxtui.sandboxes.kit.shell.over_ssh import CONNECTION_ERRORS, DRAIN_S, OverSsh, Program, log_in
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks
from taxtui.substrates.ssh import SshOptions, scripts
from taxtui.substrates.ssh.scripts import NEEDED, HostFacts

ANSWER_TIMEOUT_S: Final = 60.0
"""Time limit of a taxtui program there; a removal may have many files to delete."""
_LOGINS: Final = 8
"""Under way at once; sshd drops some of more than ten (MaxStartups)."""
_CHANNELS: Final = 8
"""Concurrent channels of a connection: sshd has ten by default (MaxSessions)."""

_DROPPED: Final = ("ConnectionLost", "ConnectionResetError", "BrokenPipeError")
_NO_LOGIN: Final = (
    (("HostKeyNotVerifiable",), "the host's key is not the one in known_hosts", "ssh there once and compare the key"),
    (("PermissionDenied",), "the host refuses the login", "name user=NAME and key=FILE; ssh -v says more"),
    (("KeyImportError", "KeyEncryptionError"), "the key cannot be used", "run ssh-add if the key has a passphrase"),
    (("ConfigParseError",), "~/.ssh/config cannot be read", "correct the line"),
    (
        ("FileNotFoundError", "IsADirectoryError", "PermissionError"),
        "the key or known_hosts file cannot be read",
        "correct key=FILE or known_hosts=FILE",
    ),
    (("gaierror",), "host name not found", "correct host=NAME, or set an address"),
    (
        ("ConnectionRefusedError",),
        "the host refuses the connection: no SSH server on that port",
        "start sshd there, or set port=NUMBER",
    ),
    (_DROPPED, "the host drops the connection", "check the port; ssh -v says more"),
    (("TimeoutError",), "the host does not answer", "check that the host is up and reachable"),
    (("OSError",), "the host cannot be reached", "check that the host is up, and the route"),
)
"""Names of an exception's class or base class, the problem, and the fix; the first row decides."""


def no_login(error: Exception) -> SubstrateError:
    """The error for a failed login. No message has the host's name or address: the recording must not."""
    for names, problem, fix in _NO_LOGIN:
        if is_named(error, *names):
            return SubstrateUnavailable(f"ssh: {problem}", fix=fix)
    return SubstrateUnavailable(f"ssh: no login: {error}", fix="ssh -v says more")


class SshSandbox(OverSsh):
    """A folder, a connection and processes; also another run's folder, for the removal."""

    def __init__(self, substrate: SshSubstrate, name: str, folder: str = "") -> None:
        self.name = name
        self._substrate = substrate
        self._folder = folder or f"{substrate.facts.base}/{name}"
        self._env: dict[str, str] = {}

    async def begin(self, spec: SandboxSpec, fixtures: str, marks: Marks) -> None:
        """Make the folder. Raises ``CreateFailed``, ``SubstrateUnavailable``, ``Throttled``."""
        self._env = {
            "LANG": "C.UTF-8",
            "HOME": f"{self._folder}/home",
            "TMPDIR": f"{self._folder}/tmp",
            **({FIXTURES_ENV: fixtures} if fixtures else {}),
            **spec.env,
            SANDBOX_ENV: scripts.mark_of(spec.name),
        }
        try:
            code, out, err = await self._substrate.run(scripts.make(self._folder, spec, math.ceil(spec.ttl_s)), marks)
        except (SandboxLost, ExecFailed) as error:  # a folder made nevertheless is found by name
            raise CreateFailed(f"{self.name} may exist or not: {error}") from error
        if code == scripts.EXISTS:
            fix = f"taxtui clean --run {spec.labels.get(LABEL_RUN, '')} --force removes it"
            raise CreateFailed(f"{spec.name} exists already", fix=fix)
        if code == scripts.NOT_PRIVATE:
            fix = "remove the folder, or set folder=PATH"
            raise CreateFailed("the folder of the sandboxes is not yours alone", fix=fix)
        if code:
            raise CreateFailed(f"cannot make a folder for {spec.name}: {last_line(err or out) or f'exit {code}'}")

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: logged in."""
        marks.cold()
        if self.connection is not None:
            self.connection.abort()  # of a wait that was cancelled
        try:
            self.connection, waited_ns = await self._substrate.log_in()
        except SubstrateUnavailable as error:
            raise SandboxLost(error.problem, fix=error.fix) from error
        marks("authenticated")
        marks.queued(waited_ns)

    def line(self, argv: Sequence[str], env: Mapping[str, str]) -> str:
        """As ``OverSsh.line``: in the working folder, with the sandbox's environment and the login's PATH."""
        return scripts.inside(self._folder, argv, {**self._env, **env})

    async def explained(self, error: SubstrateError) -> SubstrateError:
        """As ``OverSsh.explained``: the folder is gone, if the host answers."""
        try:
            code, _, _ = await self._substrate.run(scripts.exists(self._folder))
        except SubstrateError:
            return error
        return SandboxLost(f"{self.name} has been removed") if code == 1 else error

    async def unanswered(self) -> None:
        """As ``OverSsh.unanswered``: a command cannot begin without a working folder."""
        if (await self._substrate.run(scripts.exists(self._folder)))[0]:
            raise SandboxLost(f"{self.name} has been removed, or a command has removed its working folder")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: returns when the processes have ended and the folder is gone."""
        try:
            await remove(self.name, self._removed)
        finally:
            if self.connection is not None:
                self.connection.abort()

    async def _removed(self) -> bool:
        try:
            code, out, err = await self._substrate.run(scripts.remove(self._folder))
        except (SubstrateUnavailable, SandboxLost) as error:  # the host may be back in a moment
            raise Throttled(str(error), None) from error
        if code:
            raise ExecFailed(f"its folder or processes are still there: {last_line(err or out) or f'exit {code}'}")
        return True


class SshSubstrate:
    """Folders on a host."""

    name: ClassVar[str] = "ssh"
    Options: ClassVar[type[SshOptions]] = SshOptions
    variant = ""
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(deadline="guest")

    facts: HostFacts

    def __init__(self, options: SshOptions | None = None) -> None:
        self._options = options or SshOptions()
        self._gate = asyncio.Semaphore(_LOGINS)
        self._channels = asyncio.Semaphore(_CHANNELS)
        self._opening = asyncio.Lock()
        self._control: asyncssh.SSHClientConnection | None = None
        self._connections: list[asyncssh.SSHClientConnection] = []  # the newest, and others possibly open

    async def __aenter__(self) -> Self:
        try:
            await self._look()
        except SubstrateError as error:
            await self.__aexit__()
            raise SubstrateUnavailable(f"ssh: {error.problem.removeprefix('ssh: ')}", fix=error.fix) from error
        return self

    async def _look(self) -> None:
        """Describe the host. Raises the reason against use."""
        code, out, err = await self.run(scripts.look(self._options.folder, self._options.fixtures))
        host_facts = scripts.facts(out)
        if host_facts is None:
            words = " ".join((out or err).decode(errors="replace").split())[:80]
            problem = f"says {words!r}" if words else f"ended with exit code {code}"
            raise SubstrateUnavailable(
                f"ssh: commands cannot be run there: its login shell {problem}",
                fix="use a POSIX login shell with silent start-up files",
            )
        missing = [*(name for name in NEEDED if name not in host_facts.tools), *host_facts.missing]
        if missing:
            fix = f"install there: {', '.join(missing)}"
            raise SubstrateUnavailable(f"ssh: the host has no {missing[0]}", fix=fix)
        if not host_facts.base:
            fix = "set folder=PATH to a path in an existing folder"
            raise SubstrateUnavailable("ssh: the folder of the sandboxes cannot be made there", fix=fix)
        self.facts = host_facts

    async def __aexit__(self, *exc: object) -> None:
        """Close all connections, also of sandboxes that were removed."""
        for connection in self._connections:
            connection.abort()
        await asyncio.gather(*(connection.wait_closed() for connection in self._connections))

    async def log_in(self) -> tuple[asyncssh.SSHClientConnection, int]:
        """A new connection, and the wait for a free login slot in ns.

        Raises ``SubstrateUnavailable``, and ``Throttled`` if the host dropped the connection after earlier logins.
        """
        came_ns = time.monotonic_ns()
        async with self._gate:
            waited_ns = time.monotonic_ns() - came_ns
            try:
                connection = await log_in(self._options.host, **self._options.login())
            except (*CONNECTION_ERRORS, TimeoutError, ValueError) as error:  # of an unreadable key or configuration
                if self._connections and is_named(error, *_DROPPED):  # one of many at once (MaxStartups)
                    raise Throttled("ssh: the host dropped a connection before the login") from error
                raise no_login(error) from error
        still_open = [previous for previous in self._connections if not previous.is_closed()]
        self._connections = [connection, *still_open]
        return connection, waited_ns

    async def run(self, line: str, marks: Marks | None = None) -> tuple[int, bytes, bytes]:
        """Exit code and outputs of a taxtui program on the host, over a shared connection, reopened when lost.

        Raises ``SubstrateUnavailable``, ``Throttled``, ``SandboxLost`` if the connection broke, ``ExecFailed`` without
        an answer in time. After a cancellation the program runs to the end. ``marks`` receive the wait for a channel.
        """
        program, came_ns = Program(DRAIN_S), time.monotonic_ns()
        try:
            async with self._channels, asyncio.timeout(ANSWER_TIMEOUT_S):
                if marks is not None:
                    marks.queued(time.monotonic_ns() - came_ns)
                await finish_despite_cancel(program.start(await self._connected(), line))
                program.feed(b"")
                out, err = await outputs(program)
        except TimeoutError as error:
            raise ExecFailed("the host does not answer") from error
        finally:
            program.close()
        if program.exit_code is None:
            raise SandboxLost("the SSH channel was closed before the host's answer")
        return program.exit_code, out.kept, err.kept

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._opening:
            if self._control is None or self._control.is_closed():
                self._control, _ = await self.log_in()
            return self._control

    async def check(self) -> Availability:
        try:
            async with type(self)(self._options) as opened:
                control, began_ns = await opened._connected(), time.monotonic_ns()
                await opened.run("true")
                latency_ns = time.monotonic_ns() - began_ns
        except SubstrateError as error:
            return Availability(ok=False, detail=error.problem.removeprefix("ssh: "), fix=error.fix)
        version = str(control.get_extra_info("server_version", "")).removeprefix("SSH-2.0-")
        return Availability(
            ok=True,
            detail=f"ready, {version}: no isolation, limits: none",
            version=version,
            cache="node",
            tools=opened.facts.tools,
            limits="none",
            effective=Effective(network="full"),
            latency_ns=latency_ns,
            facts={"kernel": opened.facts.kernel, "asyncssh": asyncssh.__version__},
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> SshSandbox:
        """As ``Substrate.create``: returns when the folder exists."""
        sandbox = SshSandbox(self, spec.name)
        await sandbox.begin(spec, self._options.fixtures, marks)
        marks("folder made")
        return sandbox

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: all folders of sandboxes, of any user of the folder."""
        return await retry.find(partial(self._find, run_id))

    async def _find(self, run_id: str | None) -> Sequence[Found]:
        code, out, err = await self.run(scripts.list_all(self.facts.base))
        if code:
            raise SubstrateUnavailable(
                f"ssh: the sandboxes there cannot be listed: {last_line(err or out) or f'exit {code}'}"
            )
        return scripts.listed(out, run_id)

    async def reap(self, entry: Found) -> None:
        await SshSandbox(self, entry.name, entry.handle).destroy()
