"""Daytona's sandboxes, through the asyncio clients of Daytona's SDK."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import ClassVar, Final, Literal, Self

import msgspec
from daytona_api_client_async import CreateBuildInfo, CreateSandbox

from taxtui.errors import CreateFailed, SubstrateUnavailable
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import retry
from taxtui.sandboxes.kit.refusal import check_opened
from taxtui.sandboxes.lifecycle import reference_of
from taxtui.sandboxes.protocol import Availability, Capabilities, Effective, Found, Marks
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.client import STAND_IN_HEADER, Clients, ask, minutes
from taxtui.substrates.daytona.failure import DaytonaRefused
from taxtui.substrates.daytona.sandbox import DaytonaSandbox

PERMISSIONS: Final = ("write:sandboxes", "delete:sandboxes")


class DaytonaSubstrate:
    """Sandboxes of one Daytona organization."""

    name: ClassVar[str] = "daytona"
    Options: ClassVar[type[msgspec.Struct]] = DaytonaOptions

    def __init__(self, options: DaytonaOptions | None = None) -> None:
        self._options = options or DaytonaOptions()
        self.capabilities = Capabilities(
            deadline="provider",
            bash=self._options.shell == "bash",
            paid=True,
            lifecycle=("suspend", "snapshot"),
            suspend_loses=("processes", "sessions"),
        )
        self.variant = self._options.variant
        self.provenance: Literal["measured", "stand_in"] = "measured"
        self._clients: Clients | None = None

    async def __aenter__(self) -> Self:
        """Check the key. Raises ``SubstrateUnavailable``."""
        clients = Clients(self._options)
        try:
            about = await ask(clients.keys.get_current_api_key_with_http_info)
        except BaseException as error:
            await clients.close()
            if isinstance(error, DaytonaRefused):
                fix = "check DAYTONA_API_KEY" if error.final else "check DAYTONA_API_URL and the network"
                raise SubstrateUnavailable(f"daytona: {error}", fix=fix) from error
            raise
        if any(name.lower() == STAND_IN_HEADER.lower() for name in about.headers or {}):
            self.provenance = "stand_in"
        self._clients = clients
        return self

    async def __aexit__(self, *exc: object) -> None:
        clients, self._clients = self._opened, None
        await clients.close()

    @property
    def _opened(self) -> Clients:
        if self._clients is None:
            raise SubstrateUnavailable("daytona: used outside of its async with block")
        return self._clients

    async def check(self) -> Availability:
        """Look up the key, the permissions and the region."""
        if self._clients is None:
            return await check_opened(DaytonaSubstrate(self._options), "see docs/substrates/paid.md")
        began = time.monotonic_ns()
        try:
            key = await ask(self._clients.keys.get_current_api_key)
        except DaytonaRefused as error:
            return Availability(ok=False, detail=f"daytona: {error}", fix="check DAYTONA_API_KEY")
        latency_ns = time.monotonic_ns() - began
        missing = ", ".join(name for name in PERMISSIONS if name not in key.permissions)
        options = self._options
        return Availability(
            ok=not missing,
            detail=f"the key lacks: {missing}" if missing else "ready",
            fix="make a key with these permissions at app.daytona.io" if missing else "",
            version=f"api client {version('daytona-api-client-async')}",
            image=options.snapshot or options.image or "default snapshot",
            holds_fixtures=bool(options.fixtures),
            limits="as asked, in whole CPUs and GiB" if options.image else "as the snapshot says",
            effective=await self._effective(),
            region=self._clients.target or "the organization's default",
            latency_ns=latency_ns,
            facts={
                "daytona_sdk": version("daytona"),
                "warm_pool": "missed: custom resources" if options.image else "possible: plain snapshot",
            },
        )

    async def _effective(self) -> Effective:
        """The size of a sandbox: with an image the requested one in whole CPUs and GiB, else the snapshot's."""
        if self._options.image:
            return Effective(sizes="whole")
        if not self._options.snapshot:
            return Effective()
        try:
            snapshot = await ask(self._opened.snapshots.get_snapshot, self._options.snapshot)
        except DaytonaRefused:
            return Effective()
        return Effective(cpus=float(snapshot.cpu), memory_mib=round(snapshot.mem * 1024))

    async def create(self, spec: SandboxSpec, marks: Marks) -> DaytonaSandbox:
        """As ``Substrate.create``: one request, answered with the sandbox's id."""
        reference = reference_of(spec.acquire)
        if spec.acquire != "create" and not reference:
            raise CreateFailed(f"daytona creates or copies sandboxes; acquire={spec.acquire} is not possible")
        clients, options = self._opened, self._options
        request = _create_request(options, spec, clients.target, reference)
        try:
            created = await ask(clients.sandboxes.create_sandbox, request, marks=marks)
        except DaytonaRefused as error:
            raise error.as_error(CreateFailed, "the sandbox could not be created") from error
        marks("accepted")
        return DaytonaSandbox(clients, options, spec, created, marks)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``: sandboxes and snapshots, in any state, ``error`` included."""
        return await retry.find(lambda: self._opened.find(run_id))

    async def reap(self, entry: Found) -> None:
        await self._opened.remove(entry.name, entry.handle)


def _create_request(options: DaytonaOptions, spec: SandboxSpec, target: str | None, reference: str) -> CreateSandbox:
    """The request. Daytona ends a sandbox at the time to live, and deletes an ephemeral sandbox after an early stop."""
    request = CreateSandbox(
        name=spec.name,
        labels=spec.labels,
        target=target,
        user=options.user or None,
        network_block_all=not spec.network,
        auto_stop_interval=minutes(spec.ttl_s),
        auto_delete_interval=0,
        ttl_minutes=minutes(spec.ttl_s),
    )
    if reference:
        request.snapshot = reference
    elif options.image:
        request.build_info = CreateBuildInfo(dockerfile_content=f"FROM {options.image}\n")
        request.cpu = max(1, math.ceil(spec.limits.cpus))
        request.memory = max(1, math.ceil(spec.limits.memory_mib / 1024))
        request.disk = options.disk_gib
    elif options.snapshot:
        request.snapshot = options.snapshot
    return request
