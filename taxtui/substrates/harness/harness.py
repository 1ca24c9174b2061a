"""The base classes for harnesses: a substrate, a sandbox, and the access to sandboxes without the harness.

A command is a script of text, and the answer is text, by the harness's own path. Two actions go through the sandbox's
site instead: the kill of a command, and the removal of a busy sandbox. A busy harness does neither.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Final, Literal, Self

import msgspec

from taxtui.errors import ExecFailed
from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.kit import private_folder
from taxtui.sandboxes.kit.blocking_pool import BlockingPool
from taxtui.sandboxes.kit.cancellation import finish_despite_cancel, undo_if_cancelled, with_cleanup
from taxtui.sandboxes.kit.limits import SANDBOX_ENV
from taxtui.sandboxes.kit.text_sandbox import TextAnswer, TextCommand, TextSandbox
from taxtui.sandboxes.protocol import Availability, Capabilities, Found, Marks, Session
from taxtui.substrates.harness import HarborOptions, InspectOptions, SwerexOptions
from taxtui.substrates.harness.failure import not_run, not_started

# For SDKs with a parameter for a logger.
QUIET: Final = logging.getLogger("taxtui.harness")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

AT_ONCE: Final = 64
"""Sandboxes at a time. Each may occupy two threads: by a command, and by a start or an end."""
_ARGUMENT: Final = 100_000  # bytes of a script; Linux takes no argument beyond 128 KiB
_STOP_S: Final = 30.0
_UNDO_S: Final = 30.0
"""Longest wait for a cancelled start: with the wait for an abandoned create less than the limit of a clean-up."""


class Sites(ABC):
    """Access to a harness's sandboxes without the harness: list them, kill their processes, remove them.

    A harness waits for a running command, and a dead harness knows no sandboxes. Each sandbox has a folder on this
    machine, made first and removed last: a name is used once.
    """

    root: Path
    ends_starts: ClassVar[bool] = False
    """Whether a cancelled start ends at once. Otherwise the start runs to its end, and the sandbox is destroyed."""

    def __init__(self, harness: str) -> None:
        self.pool = BlockingPool(2 * AT_ONCE, harness)

    @abstractmethod
    async def open(self) -> None:
        """Open clients, and set ``root``. Raises ``SubstrateUnavailable``."""

    @abstractmethod
    async def check(self) -> Availability:
        """Whether this kind of site can be used; the detail names no harness. Never raises."""

    def add(self, spec: SandboxSpec) -> dict[str, str]:
        """Make the folder of a new sandbox; return the sandbox's environment. Raises ``CreateFailed``."""
        private_folder.make(self.root, spec)
        return {"LANG": "C.UTF-8", **spec.env, SANDBOX_ENV: spec.name}

    @abstractmethod
    async def kill(self, name: str, mark: str) -> None:
        """Kill the processes of a sandbox with this mark. Raises ``ExecFailed``, ``CleanupFailed``."""

    @abstractmethod
    async def ended(self, name: str) -> bool:
        """Whether no command can run in a sandbox any more."""

    @abstractmethod
    async def remove(self, name: str) -> None:
        """Remove a sandbox with all processes. Idempotent. Raises ``CleanupFailed``."""

    async def find(self, run_id: str | None) -> Sequence[Found]:
        """All sandboxes of a run or of all runs. Raises ``SubstrateUnavailable``."""
        return private_folder.found_in(self.root, run_id)


class HarnessedSandbox(TextSandbox):
    """A sandbox; each harness adds running a script and stopping."""

    def __init__(self, name: str, substrate: HarnessSubstrate, *, inside: bool = True) -> None:
        """``inside``: ``run`` starts the sandbox's shell by itself; otherwise ``run`` may start any shell."""
        super().__init__(name, substrate.options.shell, {}, inside=inside)
        self._sites = substrate.sites
        self._package = substrate.package
        self._stopped = False
        self._removing = asyncio.Lock()

    @abstractmethod
    async def run(self, script: str) -> TextAnswer:
        """Run a script of the sandbox's shell by the harness's command path. Raises any exception of the harness."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop the sandbox by the harness. Raises any exception: remains are removed afterwards."""

    async def wait_ready(self, marks: Marks) -> None:
        """There is nothing to wait for: a harness's start waits until commands can be sent."""

    async def send(self, wrapped: TextCommand, timeout_s: float) -> TextAnswer:
        """A script too long for an argument is written to a file first, in pieces."""
        script = wrapped.script
        try:
            if len(script.encode()) > _ARGUMENT:
                path = f"/tmp/.taxtui-{wrapped.mark}"
                coded = base64.b64encode(script.encode()).decode()
                for at in range(0, len(coded), _ARGUMENT):
                    written = await self.run(f"printf %s {coded[at : at + _ARGUMENT]} >>{path}.64")
                    if written.exit_code:
                        raise ExecFailed(f"cannot write a long script to {path}.64: exit code {written.exit_code}")
                # The files stay until the end of the sandbox if the command is killed.
                script = f"base64 -d <{path}.64 >{path} && . {path}; _r=$?; rm -f {path} {path}.64; exit $_r"
            return await self.run(script)
        except Exception as error:  # any exception of docker, HTTP and a harness
            raise not_run(self._package, error) from error

    async def kill(self, mark: str) -> None:
        await self._sites.kill(self.name, mark)

    async def lost(self) -> str:
        return "the sandbox ended" if await self._sites.ended(self.name) else ""

    async def open_session(self) -> Session:
        """Not among the capabilities: a harness's sessions are terminals with a prompt, and torn output."""
        raise ExecFailed(f"{self.name}: this harness runs every command by itself; use exec mode")

    async def destroy(self) -> None:
        """As ``Sandbox.destroy``: by the harness, or by the site if a command still runs."""
        async with self._removing:
            if self.busy:
                await self._sites.remove(self.name)
            if not self._stopped:
                with contextlib.suppress(Exception):  # or too slow: the site removes the rest
                    await finish_despite_cancel(self.stop(), _STOP_S)
                self._stopped = True
            await self._sites.remove(self.name)
            self.forget()


class HarnessSubstrate(ABC):
    """Sandboxes by one harness."""

    name: ClassVar[str]
    Options: ClassVar[type[msgspec.Struct]]
    package: ClassVar[str]
    """The installed harness."""

    provenance: Literal["measured", "stand_in"] = "measured"
    options: HarborOptions | InspectOptions | SwerexOptions

    def __init__(
        self, sites: Sites, variant: str, *, idempotent: bool, confirms_gone: bool = True, paid: bool = False
    ) -> None:
        """``variant``: the harness's environment; ``options`` are set before."""
        self.sites = sites
        self.variant = variant
        # No deadline: only taxtui removes leftovers of a harness. No sessions: a harness has none.
        self.capabilities = Capabilities(
            idempotent_create=idempotent,
            confirms_gone=confirms_gone,
            bash=self.options.shell == "bash",
            paid=paid,
            modes=("exec",),
            max_concurrency=AT_ONCE,
        )

    @abstractmethod
    async def begin(self, spec: SandboxSpec, env: dict[str, str]) -> HarnessedSandbox:
        """Start a sandbox by the harness. Raises any exception of the harness."""

    async def __aenter__(self) -> Self:
        """Open the sites. Raises ``SubstrateUnavailable``."""
        await self.sites.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Wait for calls under way."""
        await self.sites.pool.__aexit__(*exc)

    async def check(self) -> Availability:
        """As ``Substrate.check``."""
        availability = await self.sites.check()
        if not availability.ok:
            return availability
        package_version = version(self.package)
        return msgspec.structs.replace(
            availability,
            detail=f"ready, {self.package} {package_version}, {availability.detail}",
            version=" ".join(filter(None, (self.package, package_version, availability.version))),
            facts={**availability.facts, "harness": f"{self.package} {package_version}"},
        )

    async def create(self, spec: SandboxSpec, marks: Marks) -> HarnessedSandbox:
        """As ``Substrate.create``: returns when the harness reports the start. A cancelled start is undone."""
        if self.sites.ends_starts:
            sandbox = await self._begun(spec)
        else:
            sandbox = await undo_if_cancelled(self._begun(spec), lambda sandbox: sandbox.destroy(), _UNDO_S)
        marks("started")
        return sandbox

    async def _begun(self, spec: SandboxSpec) -> HarnessedSandbox:
        env = self.sites.add(spec)
        try:
            return await self.begin(spec, env)
        except asyncio.CancelledError as cancelled:
            await with_cleanup(self.sites.remove(spec.name), cancelled)
            raise
        except (Exception, SystemExit) as error:  # any exception of docker, the compose plugin, HTTP and an SDK
            raise await with_cleanup(self.sites.remove(spec.name), not_started(self.package, error)) from error

    async def find(self, run_id: str | None = None) -> Sequence[Found]:
        """As ``Substrate.find``."""
        return await self.sites.find(run_id)

    async def reap(self, entry: Found) -> None:
        """As ``Substrate.reap``: without the harness, because a harness knows only the sandboxes of this process."""
        await self.sites.remove(entry.name)
