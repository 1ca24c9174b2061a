"""Sandboxes on a bare host: a folder each, processes over SSH, and nothing that keeps them apart.

Measures SSH itself. Minus ``local``, it is the cost of network and login; it is a lower bound for every remote
substrate. Every sandbox has a connection of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal, Self

import asyncssh

from taxtui.errors import SubstrateError, SubstrateUnavailable
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks
from taxtui.substrates.ssh import SshOptions, scripts
from taxtui.substrates.ssh.failure import not_listed
from taxtui.substrates.ssh.host import SshHost
from taxtui.substrates.ssh.sandbox import SshSandbox


class SshSubstrate:
    """Folders on one host."""

    name: ClassVar[str] = "ssh"
    Options: ClassVar[type[SshOptions]] = SshOptions
    variant = ""
    provenance: Literal["measured", "stand_in"] = "measured"
    capabilities = Capabilities(deadline="guest")

    def __init__(self, options: SshOptions | None = None) -> None:
        """Nothing is opened yet."""
        self._options = options or SshOptions()
        self._host = SshHost(self._options)

    async def __aenter__(self) -> Self:
        """Log in, and see that the host has what we need. Raises ``SubstrateUnavailable``."""
        try:
            await self._host.open()
        except SubstrateUnavailable:
            raise
        except SubstrateError as error:
            raise SubstrateUnavailable(f"ssh: {error}") from error
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connection."""
        await self._host.close()

    async def check(self) -> Availability:
        """As ``Substrate.check``, over a connection of its own."""
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
                latency_ns=latency_ns,
                facts={"kernel": host.facts.kernel, "asyncssh": asyncssh.__version__},
            )
        finally:
            await host.close()

    async def create(self, spec: SandboxSpec, marks: Marks) -> SshSandbox:
        """As ``Substrate.create``: returns when its folder is there."""
        sandbox = SshSandbox(self._host, spec.name)
        await sandbox.begin(spec, self._options.fixtures, marks)
        return sandbox

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: what is in the folder of the sandboxes, whoever made it."""
        return await retry.find(partial(self._find, run_id))

    async def _find(self, run_id: str | None) -> Sequence[Found]:
        code, out, err = await self._host.run(scripts.list_all(self._host.facts.base))
        if code:
            raise not_listed(code, err or out)
        return scripts.listed(out, run_id)

    async def reap(self, found: Found) -> None:
        """As ``Substrate.reap``."""
        await SshSandbox(self._host, found.name, found.handle).destroy()
