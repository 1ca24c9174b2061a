"""Sandboxes on a bare host: a folder each, processes over SSH, and no isolation.

Measures SSH itself. The difference to ``local`` is the cost of network and login, a lower bound for every remote
substrate. Every sandbox has a connection.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Final, Literal, Self

import asyncssh

from taxtui.errors import CreateFailed, ExecFailed, SandboxLost, SubstrateError, SubstrateUnavailable, Throttled
from taxtui.plan.spec import FIXTURES_ENV, SandboxSpec
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.labels import LABEL_RUN
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.kit.removal import remove
from taxtui.sandboxes.kit.shell.over_ssh import OverSsh
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks
from taxtui.substrates.ssh import SshOptions, scripts
from taxtui.substrates.ssh.failure import last_words, not_made
from taxtui.substrates.ssh.host import SshHost

FIRST_PAUSE_S: Final = 0.5
"""Pause before the second request for a removal from an unreachable host."""


class SshSandbox(OverSsh):
    """A folder, a connection and processes; also another run's folder, for the removal."""

    def __init__(self, host: SshHost, name: str, folder: str = "") -> None:
        self.name = name
        self._host = host
        self._folder = folder or f"{host.facts.base}/{name}"
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
            code, out, err = await self._host.run(scripts.make(self._folder, spec, math.ceil(spec.ttl_s)))
        except (SandboxLost, ExecFailed) as error:  # a folder made nevertheless is found by name
            raise CreateFailed(f"{self.name} may exist or not: {error}") from error
        if code:
            raise not_made(spec.name, spec.labels.get(LABEL_RUN, ""), code, err or out)
        marks("folder made")

    async def wait_ready(self, marks: Marks) -> None:
        """As ``Sandbox.wait_ready``: logged in."""
        marks.cold()
        if self.connection is not None:
            self.connection.abort()  # of a wait that was cancelled
        try:
            self.connection, waited_ns = await self._host.log_in()
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
            answer = await self._host.run(scripts.exists(self._folder))
        except SubstrateError:
            return error
        return SandboxLost(f"{self.name} has been removed") if answer.code == 1 else error

    async def unanswered(self) -> None:
        """As ``OverSsh.unanswered``: a command cannot begin without a working folder."""
        answer = await self._host.run(scripts.exists(self._folder))
        if answer.code:
            raise SandboxLost(f"{self.name} has been removed, or a command has removed its working folder")

    async def reset(self, marks: Marks) -> None:
        raise ExecFailed(f"{self.name}: this kind of sandbox cannot be reset")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: returns when the processes have ended and the folder is gone."""
        try:
            await remove(self.name, self._removed, first_s=FIRST_PAUSE_S)
        finally:
            if self.connection is not None:
                self.connection.abort()

    async def _removed(self) -> bool:
        try:
            code, out, err = await self._host.run(scripts.remove(self._folder))
        except (SubstrateUnavailable, SandboxLost) as error:  # the host may be back in a moment
            raise Throttled(str(error), None) from error
        if code:
            raise ExecFailed(f"its folder or processes are still there: {last_words(code, err or out)}")
        return True


class SshSubstrate:
    """Folders on a host."""

    name: ClassVar[str] = "ssh"
    Options: ClassVar[type[SshOptions]] = SshOptions
    variant = ""
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(deadline="guest")

    def __init__(self, options: SshOptions | None = None) -> None:
        self._options = options or SshOptions()
        self._host = SshHost(self._options)

    async def __aenter__(self) -> Self:
        try:
            await self._host.open()
        except SubstrateUnavailable:
            raise
        except SubstrateError as error:
            raise SubstrateUnavailable(f"ssh: {error}") from error
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._host.close()

    async def check(self) -> Availability:
        host, began_ns = SshHost(self._options), time.monotonic_ns()
        try:
            await host.open()
            began_ns = time.monotonic_ns()
            await host.run("true")
        except SubstrateError as error:
            return Availability(ok=False, detail=error.problem.removeprefix("ssh: "), fix=error.fix)
        else:
            latency_ns = time.monotonic_ns() - began_ns
            return Availability(
                ok=True,
                detail=f"ready, {host.version}: no isolation, limits: none",
                version=host.version,
                cache="node",
                tools=host.facts.tools,
                limits="none",
                effective=Effective(network="full"),
                latency_ns=latency_ns,
                facts={"kernel": host.facts.kernel, "asyncssh": asyncssh.__version__},
            )
        finally:
            await host.close()

    async def create(self, spec: SandboxSpec, marks: Marks) -> SshSandbox:
        """As ``Substrate.create``: returns when the folder exists."""
        sandbox = SshSandbox(self._host, spec.name)
        await sandbox.begin(spec, self._options.fixtures, marks)
        return sandbox

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: all folders of sandboxes, of any user of the folder."""
        return await retry.find(partial(self._find, run_id))

    async def _find(self, run_id: str | None) -> Sequence[Found]:
        code, out, err = await self._host.run(scripts.list_all(self._host.facts.base))
        if code:
            raise SubstrateUnavailable(f"ssh: the sandboxes there cannot be listed: {last_words(code, err or out)}")
        return scripts.listed(out, run_id)

    async def reap(self, entry: Found) -> None:
        await SshSandbox(self._host, entry.name, entry.handle).destroy()
