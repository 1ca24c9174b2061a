"""One EC2 instance as a sandbox: wait until ready, suspend, copy, remove."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Final

import asyncssh

from taxtui.errors import ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.shell.over_ssh import CONNECTION_ERRORS, LOGIN_TIMEOUT_S, OverSsh, log_in
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.ec2.api import Ec2Api
from taxtui.substrates.aws.ec2.instance import USER, InstanceState, ended, no_login
from taxtui.substrates.aws.failure import AgentNeverConnected

_STOPPED: Final = ("stopping", "stopped")
KNOCK_S: Final = 0.1
"""Between two logins."""


async def connect(
    address: str, port: int, user: str, client_key: asyncssh.SSHKey, host_key: asyncssh.SSHKey
) -> asyncssh.SSHClientConnection:
    """Log in, only to a host with ``host_key``. Raises as ``log_in``."""
    return await log_in(
        address,
        port=port,
        username=user or USER,
        client_keys=[client_key],
        known_hosts=([host_key.convert_to_public()], [], []),
        server_host_key_algs=["ssh-ed25519"],
        config=None,
        agent_path=None,
        preferred_auth=["publickey"],
    )


class Ec2Sandbox(OverSsh):
    """One instance, and an SSH connection to it."""

    def __init__(
        self,
        api: Ec2Api,
        name: str,
        instance: str,
        env: Mapping[str, str],
        client_key: asyncssh.SSHKey,
        host_key: asyncssh.SSHKey,
    ) -> None:
        self.name = name
        self._api = api
        self._instance = instance
        self._env = env
        self._client_key, self._host_key = client_key, host_key
        self._launched_s = time.monotonic()
        self._suspended = False
        self._late_ns = 0  # the delay of the state running by throttling, if sshd was up by then

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: running, logged in, a first command run."""
        marks.cold()  # an SSH connection is made for every instance
        address = await self._running(marks)
        give_up_ns = time.monotonic_ns() + round(self._api.options.login_timeout_s * 1e9)
        for attempt in (1, 2):
            await self._log_in(address, marks, give_up_ns)
            try:
                first = await self.exec(Command(script="true", timeout_s=LOGIN_TIMEOUT_S))
            except SandboxLost:
                if attempt == 2:
                    raise
                continue  # cloud-init restarts sshd after the change of the host key
            if first.exit_code != 0:
                raise ExecFailed(f"the first command in the instance ended with exit code {first.exit_code}")
            marks("first exec")
            marks.queued(self._late_ns)
            return

    async def _running(self, marks: Marks) -> str:
        """Wait for the state running, and return the address."""
        seen = {name for name, _, _ in marks.seen}
        while True:
            state, self._late_ns = await self._api.next_state(self._instance, marks, self._started)
            if state.status not in seen:
                seen.add(state.status)
                marks(state.status, resolution_ns=self._api.poller.interval_ns + self._late_ns)
            if state.status == "running":
                break
        if not state.address:
            raise AgentNeverConnected(
                "the instance runs but has no public address", fix="the subnet assigns none: use address=private"
            )
        return state.address

    async def _log_in(self, address: str, marks: Marks, give_up_ns: int) -> None:
        """Until sshd is up, and cloud-init has made the user and put the host key in place."""
        options = self._api.options
        if self.connection is not None:
            self.connection.abort()  # of a cancelled wait, or cut by cloud-init
        while True:
            try:
                self.connection = await connect(address, options.port, options.user, self._client_key, self._host_key)
            except (*CONNECTION_ERRORS, TimeoutError) as error:
                if time.monotonic_ns() > give_up_ns:
                    raise AgentNeverConnected(
                        f"the instance runs, but takes no login after {options.login_timeout_s:g} s: {no_login(error)}"
                    ) from error
                self._late_ns = 0  # the instance is still booting: an earlier login would have failed
                await asyncio.sleep(KNOCK_S)
            else:
                marks("authenticated", resolution_ns=round(KNOCK_S * 1e9))
                return

    def line(self, argv: Sequence[str], env: Mapping[str, str]) -> str:
        """A line for the user's login shell: run ``argv`` in the home directory."""
        variables = [f"{key}={value}" for key, value in {**self._env, **env}.items()]
        return f"cd && exec env {shlex.join([*variables, *argv])}"

    async def explained(self, error: SubstrateError) -> SubstrateError:
        return await self._api.explained(self._instance, self._launched_s, error)

    def _started(self, state: InstanceState) -> bool:
        """Whether DescribeInstances knows the last start."""
        return not (self._suspended and state.status in _STOPPED)

    async def suspend(self, marks: Marks) -> None:
        """Stop the instance: the volume stays and costs money, processes end."""
        self._suspended = True
        if self.connection is not None:
            self.connection.abort()
        await self._request("stopping the instance", "stop_instances")
        await self._settled("stopped")

    async def resume(self, marks: Marks) -> None:
        """Start the instance and log in; the address may be another."""
        if not self._suspended:
            return
        if await self._settled("stopped", "running") == "stopped":
            await self._request("starting the instance", "start_instances")
        await self.wait_ready(marks)
        self._suspended = False

    async def usage(self) -> Usage:
        """Unknown: EC2 reports no usage."""
        return Usage()

    async def snapshot(self, name: str, labels: Mapping[str, str], marks: Marks) -> str:
        """Create an image of the running instance, with all files written before; open files may be torn."""
        if (await self.exec(Command(script="sync"))).exit_code != 0:
            raise ExecFailed("sync failed: the instance cannot write files to disk")
        return await self._api.create_image(self._instance, name, labels)

    async def _request(self, doing: str, operation: str) -> None:
        await finish_despite_cancel(self._api.call(doing, operation, ExecFailed, InstanceIds=[self._instance]))

    async def _settled(self, *wanted: str) -> str:
        """Wait for one of these states and return it. Raises ``SandboxLost``: the instance is terminated."""
        while True:
            state = (await self._api.poller.next(self._instance)).state
            if state is not None and state.status in wanted:
                return state.status
            if state is not None and state.status in ("shutting-down", "terminated"):
                raise ended(state.status, state.code, state.reason)

    async def reset(self, marks: Marks) -> None:
        raise ExecFailed("ec2 cannot reset a sandbox")

    async def destroy(self) -> None:
        if self.connection is not None:
            self.connection.abort()
        await self._api.remove(self._instance, self._launched_s)
