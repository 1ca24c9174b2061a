"""One EC2 instance as a sandbox: wait until ready, suspend, copy, remove."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError
from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel
from taxtui.sandboxes.kit.retry import Retry
from taxtui.sandboxes.kit.shell.over_ssh import CONNECTION_ERRORS, LOGIN_TIMEOUT_S, OverSsh, log_in
from taxtui.sandboxes.lifecycle import Usage
from taxtui.sandboxes.protocol import Marks
from taxtui.substrates.aws.connection import AwsSubstrate, tag_list
from taxtui.substrates.aws.failure import AgentNeverConnected

_STOPPED: Final = ("stopping", "stopped")
KNOCK_S: Final = 0.1
"""Between two logins."""


class Ec2Sandbox(OverSsh):
    """One instance, and an SSH connection to it."""

    def __init__(self, substrate: AwsSubstrate, spec: SandboxSpec, instance: str, login: Mapping[str, Any]) -> None:
        """``login``: the keywords of ``log_in``."""
        self.name = spec.name
        self._env = spec.env
        self._substrate = substrate
        self._instance = instance
        self._login = login
        self._launched_s = time.monotonic()
        self._suspended = False

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: running, logged in, a first command run."""
        marks.cold()  # an SSH connection is made for every instance
        passing = _STOPPED if self._suspended else ()  # lookups may not know the last start
        state, late_ns = await self._substrate.reached(self._instance, marks, "running", passing=passing)
        if not state.address:
            raise AgentNeverConnected(
                "the instance runs but has no public address", fix="the subnet assigns none: use address=private"
            )
        login_timeout_s, cut = self._substrate.options.login_timeout_s, False
        give_up_ns = time.monotonic_ns() + round(login_timeout_s * 1e9)
        while True:  # until sshd is up, and cloud-init has made the user and put the host key in place
            if self.connection is not None:
                self.connection.abort()  # of a cancelled wait, or cut by cloud-init
            try:
                self.connection = await log_in(state.address, **self._login)
                marks("authenticated", resolution_ns=round(KNOCK_S * 1e9))
                first = await self.exec(Command(script="true", timeout_s=LOGIN_TIMEOUT_S))
                break
            except SubstrateError as error:
                if cut or not isinstance(error, SandboxLost):
                    raise
                cut = True  # cloud-init restarts sshd after the change of the host key
            except (*CONNECTION_ERRORS, TimeoutError) as error:
                if time.monotonic_ns() > give_up_ns:
                    raise AgentNeverConnected(
                        f"the instance runs, but takes no login after {login_timeout_s:g} s: {type(error).__name__}",
                        fix="check the security group, the route, and cloud-init in the image",
                    ) from error
                late_ns = 0  # the instance is still booting: an earlier login would have failed
                await asyncio.sleep(KNOCK_S)
        if first.exit_code != 0:
            raise ExecFailed(f"the first command in the instance ended with exit code {first.exit_code}")
        marks("first exec")
        marks.queued(late_ns)

    def line(self, argv: Sequence[str], env: Mapping[str, str]) -> str:
        """A line for the user's login shell: run ``argv`` in the home directory."""
        variables = [f"{key}={value}" for key, value in {**self._env, **env}.items()]
        return f"cd && exec env {shlex.join([*variables, *argv])}"

    async def explained(self, error: SubstrateError) -> SubstrateError:
        return await self._substrate.explained(self._instance, self._launched_s, error)

    async def suspend(self, marks: Marks) -> None:
        """Stop the instance: the volume stays and costs money, processes end."""
        self._suspended = True
        if self.connection is not None:
            self.connection.abort()
        await self._change("stopping the instance", "stop_instances")
        await self._settled("stopped")

    async def resume(self, marks: Marks) -> None:
        """Start the instance and log in; the address may be another."""
        if not self._suspended:
            return
        if await self._settled("stopped", "running") == "stopped":
            await self._change("starting the instance", "start_instances")
        await self.wait_ready(marks)
        self._suspended = False

    async def _change(self, doing: str, operation: str) -> None:
        changing = self._substrate.call(doing, operation, ExecFailed, InstanceIds=[self._instance])
        await finish_despite_cancel(changing)

    async def usage(self) -> Usage:
        """Unknown: EC2 reports no usage."""
        return Usage()

    async def snapshot(self, name: str, labels: Mapping[str, str], marks: Marks) -> str:
        """Create an image of the running instance, with all files written before; open files may be torn."""
        if (await self.exec(Command(script="sync"))).exit_code != 0:
            raise ExecFailed("sync failed: the instance cannot write files to disk")
        tags = [{"ResourceType": kind, "Tags": tag_list(name, labels)} for kind in ("image", "snapshot")]
        about: dict[str, Any] = {"InstanceId": self._instance, "Name": name, "TagSpecifications": tags}
        creating = self._substrate.call("creating an image", "create_image", CreateFailed, NoReboot=True, **about)
        image = str((await finish_despite_cancel(creating))["ImageId"])
        # By filter: a lookup by id is refused while EC2 does not know the new image.
        look = partial(self._substrate.call, "looking up images", "describe_images")
        by_id = {"Name": "image-id", "Values": [image]}
        status = "pending"
        while status == "pending":
            await asyncio.sleep(self._substrate.options.poll_s)
            images = (await Retry()(lambda: look(Filters=[by_id])))["Images"]
            status = images[0]["State"] if images else status
        if status != "available":
            raise CreateFailed(f"ec2: the image is {status}")
        return image

    async def _settled(self, *wanted: str) -> str:
        """Wait for one of these states and return it. Raises ``SandboxLost``: the instance is terminated."""
        while True:
            state = (await self._substrate.poller.next(self._instance)).state
            if state is not None and state.status in wanted:
                return state.status
            if state is not None and state.failure and state.status in ("shutting-down", "terminated"):
                raise state.failure

    async def destroy(self) -> None:
        if self.connection is not None:
            self.connection.abort()
        await self._substrate.remove(self._instance, self._launched_s)
