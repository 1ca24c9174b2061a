"""One EC2 instance as a sandbox: from accepted to running to logged in, its commands, its end."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Mapping
from typing import Final

import asyncssh

from taxtui.errors import ExecFailed, ExecTimeout, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.captured_command import Captured, wrap_command
from taxtui.sandboxes.kit.framed_shell import ENDED, STDERR, STDOUT, FramedShell, launch_argv, unbroken
from taxtui.sandboxes.kit.marked import MARK, kill_script
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.aws.connection import ExplainedSession
from taxtui.substrates.aws.ec2.api import Ec2Api
from taxtui.substrates.aws.ec2.failure import no_login
from taxtui.substrates.aws.ec2.ssh import CONNECTION_ERRORS, LOGIN_TIMEOUT_S, Program, connect, remote_command
from taxtui.substrates.aws.failure import AgentNeverConnected
from taxtui.substrates.aws.removal import settled

KNOCK_S: Final = 0.1
"""Between two looks whether the port is open, and whether the login works."""
DRAIN_S: Final = 2.0
"""For output that follows the exit of a command that killed its own shell, and so prints no end marker."""
KILL_TIMEOUT_S: Final = 10.0


class Ec2Sandbox:
    """One instance, and one SSH connection to it."""

    def __init__(
        self,
        api: Ec2Api,
        name: str,
        instance: str,
        env: Mapping[str, str],
        client_key: asyncssh.SSHKey,
        host_key: asyncssh.SSHKey,
    ) -> None:
        """Of an instance that EC2 has accepted."""
        self.name = name
        self._api = api
        self._instance = instance
        self._env = env
        self._client_key, self._host_key = client_key, host_key
        self._connection: asyncssh.SSHClientConnection | None = None
        self._launched_s = time.monotonic()
        self._late_ns = 0  # how late throttling made the look that saw it running, if that held anything up

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: running, the port open, logged in, a first command run."""
        marks.cold()  # an SSH connection is made for every instance
        address = await self._running(marks)
        give_up_ns = time.monotonic_ns() + round(self._api.options.login_timeout_s * 1e9)
        await self._knock(address, marks, give_up_ns)
        for attempt in (1, 2):
            await self._log_in(address, marks, give_up_ns)
            try:
                first = await self.exec(Command(script="true", timeout_s=LOGIN_TIMEOUT_S))
            except SandboxLost:
                if attempt == 2:
                    raise
                continue  # cloud-init restarts sshd once it has put our host key in place
            if first.exit_code != 0:
                raise ExecFailed(f"the first command in the instance ended with exit code {first.exit_code}")
            marks("first exec")
            marks.queued(self._late_ns)
            return

    async def _running(self, marks: Marks) -> str:
        poller = self._api.poller
        seen = {name for name, _, _ in marks.seen}
        while True:
            state, late_ns = await poller.next(self._instance)
            if state is None:
                continue  # RunInstances has answered, DescribeInstances does not know of it yet
            if state.ending:
                raise state.failure()
            if state.status not in seen:
                seen.add(state.status)
                marks(state.status, resolution_ns=poller.interval_ns + late_ns)
            if state.status == "running":
                if not state.address:
                    raise AgentNeverConnected(
                        "the instance runs but has no public address; its subnet gives none: use address=private"
                    )
                self._late_ns = late_ns
                return state.address

    async def _knock(self, address: str, marks: Marks, give_up_ns: int) -> None:
        port = self._api.options.port
        while True:
            try:
                async with asyncio.timeout(LOGIN_TIMEOUT_S):
                    _, writer = await asyncio.open_connection(address, port)
            except (OSError, TimeoutError):
                await self._pause(
                    give_up_ns,
                    f"port {port} stays closed; does the security group let this machine in, and is there a route?",
                )
                continue
            marks("port open", resolution_ns=round(KNOCK_S * 1e9))
            writer.close()
            return

    async def _log_in(self, address: str, marks: Marks, give_up_ns: int) -> None:
        """Until cloud-init has made the user and put the host key in place; both take their time after the port."""
        options = self._api.options
        while True:
            try:
                self._connection = await connect(address, options.port, options.user, self._client_key, self._host_key)
            except (*CONNECTION_ERRORS, TimeoutError) as error:
                why = no_login(error)
            else:
                marks("authenticated", resolution_ns=round(KNOCK_S * 1e9))
                return
            await self._pause(give_up_ns, why)

    async def _pause(self, give_up_ns: int, why: str) -> None:
        if time.monotonic_ns() > give_up_ns:
            raise AgentNeverConnected(
                f"the instance runs, but not within {self._api.options.login_timeout_s:g} s of it: {why}"
            )
        self._late_ns = 0  # it has not booted yet: knocking earlier would only have been in vain
        await asyncio.sleep(KNOCK_S)

    @property
    def _open(self) -> asyncssh.SSHClientConnection:
        if self._connection is None or self._connection.is_closed():
            raise SandboxLost("the SSH connection is closed")
        return self._connection

    async def exec(self, command: Command) -> ExecResult:
        """As ``Sandbox.exec``: a new channel on the connection."""
        wrapped = wrap_command(command, "bash")
        mark = secrets.token_hex(8)
        program = Program(DRAIN_S)
        try:
            async with asyncio.timeout(command.timeout_s):
                await unbroken(program.start(self._open, remote_command(wrapped.argv, {**self._env, MARK: mark})))
                program.feed(wrapped.stdin)
                return await _collect(program, wrapped.marker)
        except TimeoutError:
            await unbroken(self.kill(mark))
            raise ExecTimeout(f"the command was killed after {command.timeout_s:g} s") from None
        except SandboxLost as error:
            raise await self.explained(error) from error
        except BaseException:
            await unbroken(self.kill(mark))
            raise
        finally:
            program.close()

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        stream = _Shell(self)
        try:
            await unbroken(stream.start(self._open, self._env))
            return ExplainedSession(await FramedShell.open(stream), self.explained)
        except SandboxLost as error:
            await unbroken(stream.close())
            raise await self.explained(error) from error
        except BaseException:
            await unbroken(stream.close())
            raise

    async def kill(self, mark: str) -> None:
        """Kill what carries a mark. Without a connection nobody can be asked: then the sandbox's end does it."""
        program = Program(0)
        with contextlib.suppress(SubstrateError, TimeoutError):
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await program.start(self._open, kill_script(mark))
                while (await program.read())[0] != ENDED:
                    pass
        program.close()

    async def explained(self, error: SubstrateError) -> SubstrateError:
        """Why the connection failed: what became of its instance, if that is the reason."""
        seen = await self._api.poller.soon(self._instance)
        if seen is None:
            return error
        if seen.state is None:
            return SandboxLost("the instance no longer exists") if settled(self._launched_s) else error
        return seen.state.failure() if seen.state.ending else error

    async def reset(self, marks: Marks) -> None:
        """Not among the capabilities."""
        raise ExecFailed("ec2 cannot reset a sandbox")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: returns when the instance is terminated."""
        if self._connection is not None:
            self._connection.abort()
        await self._api.remove(self._instance, self._launched_s)


async def _collect(program: Program, marker: bytes) -> ExecResult:
    """Both streams up to their end markers, which come while background processes still hold them."""
    streams = {STDOUT: Captured(marker), STDERR: Captured(marker)}
    while any(stream.exit_code is None for stream in streams.values()):
        number, chunk = await program.read()
        if number == ENDED:
            break
        streams[number].feed(chunk)
    code = streams[STDOUT].exit_code
    if code is None:
        code = program.exit_code  # the command has killed the shell around it
    if code is None:
        raise SandboxLost("the SSH channel was closed while a command ran")
    return ExecResult(code, bytes(streams[STDOUT].data), bytes(streams[STDERR].data))


class _Shell:
    """A ``shell.ByteStream``: a program whose end leaves no process behind that it started."""

    def __init__(self, sandbox: Ec2Sandbox) -> None:
        self._sandbox = sandbox
        self._program = Program(0)
        self._mark = secrets.token_hex(8)
        self._closed = False

    async def start(self, connection: asyncssh.SSHClientConnection, env: Mapping[str, str]) -> None:
        await self._program.start(connection, remote_command(launch_argv(), {**env, MARK: self._mark}))

    async def read(self) -> tuple[int, bytes]:
        return await self._program.read()

    async def write(self, data: bytes) -> None:
        await self._program.write(data)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._sandbox.kill(self._mark)
            self._program.close()
