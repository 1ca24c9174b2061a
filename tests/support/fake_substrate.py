"""A substrate without sandboxes: it records what it was asked, and fails, hangs or throttles where a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Literal, Self

import msgspec

from taxtui.plan.spec import Command, SandboxSpec
from taxtui.sandboxes.protocol import Availability, Capabilities, ExecResult, Found, Marks

Hook = Callable[[], Awaitable[None]]


async def nothing() -> None:
    pass


class FakeOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """None."""


class FakeSubstrate:
    """Sandboxes are entries of a dictionary; ``alive`` is what would be a leak."""

    name: ClassVar[str] = "fake"
    Options: ClassVar[type[msgspec.Struct]] = FakeOptions
    variant = ""
    provenance: Literal["measured", "stand_in"] = "stand_in"

    def __init__(self, options: FakeOptions | None = None) -> None:
        self.capabilities = Capabilities(acquire=("create", "reset"))
        self.availability = Availability(ok=True, detail="ready", holds_fixtures=True)
        self.alive: dict[str, str] = {}  # name -> run id
        self.commands: list[Command] = []
        self.calls: list[str] = []
        self.create_hook: Hook = nothing
        self.created_hook: Hook = nothing  # after the sandbox exists, before create answers
        self.ready_hook: Hook = nothing
        self.exec_hook: Hook = nothing
        self.destroy_hook: Hook = nothing
        self.reset_hook: Hook = nothing
        self.answer: Callable[[Command], ExecResult] = lambda command: ExecResult(0, b"", b"")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.calls.append("closed")

    async def check(self) -> Availability:
        return self.availability

    async def create(self, spec: SandboxSpec, marks: Marks) -> FakeSandbox:
        self.calls.append(f"create {spec.name}")
        await self.create_hook()
        self.alive[spec.name] = spec.labels["taxtui.run"]
        await self.created_hook()
        marks("accepted")
        return FakeSandbox(self, spec.name)

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        return [
            Found(name=name, handle=name, run_id=run, age_s=0.0)
            for name, run in self.alive.items()
            if run_id in (None, run)
        ]

    async def reap(self, found: Found) -> None:
        self.calls.append(f"reap {found.name}")
        self.alive.pop(found.name, None)


class FakeSandbox:
    def __init__(self, substrate: FakeSubstrate, name: str) -> None:
        self.substrate = substrate
        self.name = name

    async def wait_ready(self, marks: Marks) -> None:
        await self.substrate.ready_hook()
        marks("running")

    async def exec(self, command: Command) -> ExecResult:
        self.substrate.commands.append(command)
        await self.substrate.exec_hook()
        return self.substrate.answer(command)

    async def open_session(self) -> FakeSession:
        self.substrate.calls.append("open_session")
        return FakeSession(self)

    async def reset(self, marks: Marks) -> None:
        self.substrate.calls.append(f"reset {self.name}")
        await self.substrate.reset_hook()

    async def destroy(self) -> None:
        self.substrate.calls.append(f"destroy {self.name}")
        await self.substrate.destroy_hook()
        self.substrate.alive.pop(self.name, None)


class FakeSession:
    def __init__(self, sandbox: FakeSandbox) -> None:
        self.sandbox = sandbox

    async def exec(self, command: Command) -> ExecResult:
        return await self.sandbox.exec(command)

    async def close(self) -> None:
        self.sandbox.substrate.calls.append("close_session")
        await asyncio.sleep(0)
