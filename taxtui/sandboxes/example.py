"""The substrate ``example``: sandboxes of a provider with an async SDK.

Replace ``AsyncClient`` and ``ApiError`` by your provider's SDK, then mend each method. After each change run:

    python -m taxtui.sandboxes.conformance example
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from taxtui.sandboxes.fake_sdk import ApiError, AsyncClient
from taxtui.sandboxes.simple import (
    Capabilities,
    SandboxLost,
    SandboxSpec,
    SimpleSubstrate,
    SubstrateError,
    Throttled,
)


class ExampleOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options on the command line: ``-s example:account=NAME``. Every field needs a default value."""

    account: str = ""


class Example(SimpleSubstrate):
    """Sandboxes of the provider."""

    name = "example"
    Options = ExampleOptions
    capabilities = Capabilities(
        deadline="none",  # "provider" if the provider itself ends a sandbox after spec.ttl_s
        idempotent_create=False,  # True if two creates with the same name cannot make two sandboxes
        paid=False,  # True if sandboxes cost money
        modes=("exec",),
    )
    provenance = "stand_in"  # delete this line: it marks an emulated provider

    # ---- clients

    async def connect(self) -> None:
        """Open the SDK's client."""
        self.client = AsyncClient(self.options.account)

    async def disconnect(self) -> None:
        """Close it."""
        await self.client.close()

    async def ping(self) -> str:
        """Ask whether the provider answers. Shown by ``taxtui doctor``."""
        return f"ready, {await self.client.version()}"

    # ---- sandboxes

    async def create_sandbox(self, spec: SandboxSpec) -> str:
        """Make a sandbox with all of ``spec.labels``; return its id. Use ``spec.limits`` too."""
        sandbox = await self.client.create(tags=spec.labels, timeout_s=spec.ttl_s)
        return sandbox.id

    async def delete(self, handle: str) -> None:
        """Request the sandbox's end."""
        await self.client.delete(handle)

    async def list(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of every sandbox by id: how taxtui finds sandboxes that a killed run left behind."""
        return {sandbox.id: sandbox.tags for sandbox in await self.client.list()}

    # ---- commands

    async def run(self, handle: str, argv: Sequence[str], stdin: bytes, timeout_s: float) -> tuple[int, bytes, bytes]:
        """Run a program in the sandbox until it exits."""
        ended = await self.client.exec(handle, argv, stdin=stdin, timeout_s=timeout_s)
        return ended.exit_code, ended.stdout, ended.stderr

    # ---- errors

    def error_of(self, error: Exception) -> SubstrateError | None:
        """Map the SDK's errors "gone" and "too many requests" to taxtui's errors."""
        match error:
            case ApiError(status=404):
                return SandboxLost(str(error))
            case ApiError(status=429):
                return Throttled(str(error), error.retry_after_s)
        return None
