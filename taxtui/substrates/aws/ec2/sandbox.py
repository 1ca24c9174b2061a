"""One EC2 instance as a sandbox: from accepted to running to logged in, its commands, its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

import asyncssh

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.captured_command import captured, wrap_command
from taxtui.sandboxes.kit.framed_shell import ENDED, FramedShell, after, launch_argv, overdue, unbroken
from taxtui.sandboxes.kit.kept_output import exec_result
from taxtui.sandboxes.kit.kill import MARK, kill_script, new_mark
from taxtui.sandboxes.kit.removal import settled
from taxtui.sandboxes.kit.session import ExplainedSession, OwnedStream
from taxtui.sandboxes.protocol import ExecResult, Marks, Session
from taxtui.substrates.aws.ec2.api import Ec2Api
from taxtui.substrates.aws.ec2.failure import no_login
from taxtui.substrates.aws.ec2.ssh import CONNECTION_ERRORS, LOGIN_TIMEOUT_S, Program, connect, remote_command
from taxtui.substrates.aws.failure import AgentNeverConnected

KNOCK_S: Final = 0.1
"""Between two looks whether the port is open, and whether the login works."""
DRAIN_S: Final = 2.0
"""For output that follows the exit of a command that killed its own shell, and so prints no end marker."""
KILL_TIMEOUT_S: Final = 10.0
_LEFT: Final = "a command's processes may still run in the instance"


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
            poller.tell(marks)
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
                        "the instance runs but has no public address", fix="its subnet gives none: use address=private"
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
        if self._connection is not None:
            self._connection.abort()  # of a wait that was cancelled, or cut off by cloud-init
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
        program = Program(DRAIN_S)
        try:
            async with asyncio.timeout(command.timeout_s):
                await unbroken(program.start(self._open, remote_command(wrapped.argv, self._env)))
                program.feed(wrapped.stdin)
                return await _collect(program, wrapped.marker)
        except TimeoutError:
            raise await overdue(self._kill(wrapped.mark), command.timeout_s) from None
        except SandboxLost as error:
            raise await self.explained(error) from error
        except BaseException as error:
            await after(self._kill(wrapped.mark), error)
            raise
        finally:
            program.close()

    async def open_session(self) -> Session:
        """As ``Sandbox.open_session``."""
        program, mark = Program(0), new_mark()

        async def end() -> None:
            try:
                await self._kill(mark)
            finally:
                program.close()

        stream = OwnedStream(program, end)
        try:
            await unbroken(program.start(self._open, remote_command(launch_argv(), {**self._env, MARK: mark})))
            return ExplainedSession(await FramedShell.open(stream), self.explained)
        except BaseException as error:
            await after(stream.close(), error)
            if isinstance(error, SandboxLost):
                raise await self.explained(error) from error
            raise

    async def _kill(self, mark: str) -> None:
        """Kill what has this mark; without a connection nobody can be asked: the sandbox's end does it then.

        Raises ``ExecFailed`` where that failed.
        """
        program, words = Program(0), b""
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await program.start(self._open, kill_script(mark))
                while (item := await program.read())[0] != ENDED:
                    words += item[1]
        except SandboxLost:
            return
        except TimeoutError as error:
            raise ExecFailed(f"{_LEFT}: no answer") from error
        finally:
            program.close()
        if program.exit_code == 1:  # another: the killer was killed, with the instance
            raise ExecFailed(f"{_LEFT}: {' '.join(words.decode(errors='replace').split()) or 'they survive SIGKILL'}")

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
    """What a command did, where it is to be had."""
    stdout, stderr = await captured(program, marker)
    code = program.exit_code if stdout.exit_code is None else stdout.exit_code  # it has killed the shell around it
    if code is None:
        raise SandboxLost("the SSH channel was closed while a command ran")
    return exec_result(code, stdout.output(), stderr.output())
